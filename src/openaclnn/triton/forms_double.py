DOUBLE = {}
