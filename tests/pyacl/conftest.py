# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from tests.pyacl.pyacl_support import acl, done


@pytest.fixture(autouse=True)
def _device():
    """Device 0, as the newest call of the thread; no message of an earlier test."""
    done(acl.rt.set_device(0))
    acl.get_recent_err_msg()


@pytest.fixture
def stream():
    made = done(acl.rt.create_stream())
    yield made
    done(acl.rt.destroy_stream(made))
