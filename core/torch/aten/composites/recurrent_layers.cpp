// SPDX-License-Identifier: Apache-2.0
// LSTM and GRU of several layers and both directions, with the parameters of torch.nn.LSTM and GRU,
// their gradients, and the cell alone.
#include "core/torch/aten/composites/recurrent_packed.h"

namespace openaclnn::aten {
namespace {

constexpr const char* LSTM_ORDER = "ifjo";
constexpr const char* GRU_ORDER = "rzh";

// The cells in order: the directions of the first layer, of the second, ...
class Layers {
 public:
  Layers(const Tensor& input, const Tensors& params, int64_t gates, bool has_bias, int64_t layers,
         double dropout, bool train, bool bidirectional, bool batch_first, const Tensor& batches)
      : params_(params),
        step_(has_bias ? 4 : 2),
        directions_(bidirectional ? 2 : 1),
        batch_first_(batch_first) {
    require(layers >= 1 && layers <= 1 << 20, "numLayers must be from 1 to ", 1 << 20, ", but got ",
            layers);
    require(dropout == 0 || !train || layers == 1, "dropout must be 0 in training, but got ",
            dropout);
    cells_ = static_cast<size_t>(layers) * directions_;
    require(params.size() == cells_ * step_, "params must have ", cells_ * step_,
            " tensors for the cells of ", cells_, " layers and directions, but has ",
            params.size());
    if (is_there(batches)) {
      require(!batch_first, "batchFirst must be false with batchSizes, but is true");
      mask_ = packed_mask(input, batches);
    }
    x_ = wide(steps_of(input, "input"));
    check_rank(params[1], "params[1]", 2, 2);
    hidden_ = params[1].size(1);
    for (size_t cell = 0; cell < cells_; ++cell) {
      const int64_t features =
          cell < directions_ ? x_.size(2) : hidden_ * static_cast<int64_t>(directions_);
      const int64_t rows = gates * hidden_;
      const Ints shapes[] = {{rows, features}, {rows, hidden_}, {rows}, {rows}};
      for (size_t k = 0; k < step_; ++k) {
        const std::string name = c10::str("params[", cell * step_ + k, "]");
        check_shape(params[cell * step_ + k], name.c_str(), shapes[k]);
      }
    }
  }

  size_t cells() const { return cells_; }
  size_t directions() const { return directions_; }
  const Tensor& x() const { return x_; }
  Tensor weight_input(size_t cell) const { return params_[cell * step_].t(); }
  Tensor weight_hidden(size_t cell) const { return params_[cell * step_ + 1].t(); }
  Tensor bias(size_t cell, size_t k) const {
    return step_ == 4 ? wide(params_[cell * step_ + 2 + k]) : Tensor();
  }
  // Steps backwards in time in the second direction.
  const char* direction(size_t cell) const {
    return cell % directions_ == 0 ? "UNIDIRECTIONAL" : "REDIRECTIONAL";
  }
  Tensor last(size_t cell, const Tensor& steps) const {
    check_steps();
    return steps[cell % directions_ == 0 ? steps.size(0) - 1 : 0];
  }
  // The state of a cell in [cells, B, H]; undefined where it is left out.
  Tensor of_cell(const Tensor& states, const char* name, size_t cell) const {
    if (!is_there(states)) return {};
    check_shape(states, name, {static_cast<int64_t>(cells_), x_.size(1), hidden_});
    return states[static_cast<int64_t>(cell)];
  }
  // [T, B, H] of a direction of dy, which has them side by side.
  Tensor of_direction(const Tensor& dy, size_t direction) const {
    return dy.defined() ? dy.narrow(2, static_cast<int64_t>(direction) * hidden_, hidden_) : dy;
  }
  // [T, B, H], 1 for the steps of packed sequences and 0 for padding; undefined without them.
  Tensor mask() const {
    return mask_.defined() ? mask_.expand({x_.size(0), x_.size(1), hidden_}) : mask_;
  }
  // [T, B, features] of what the caller has in another order of dims, or packed.
  Tensor steps_of(const Tensor& given, const char* name) const {
    if (mask_.defined()) return without_padding(given, mask_, name);
    check_rank(given, name, 3, 3);
    return batch_first_ ? given.transpose(0, 1) : given;
  }
  // In the caller's order of dims; packed sequences may have [T B, features].
  void put_steps(const Out& out, const Tensor& y) const {
    const bool flat = mask_.defined() && out.tensor().defined() && out.tensor().dim() == 2;
    out = batch_first_ ? y.transpose(0, 1) : flat ? y.flatten(0, 1) : y;
  }
  void check_saved(const Tensors& list, const char* name, bool may_lack = false) const {
    require(list.size() == cells_, name, " must have ", cells_,
            " tensors, one for each layer and direction, but has ", list.size());
    for (size_t i = 0; i < cells_; ++i)
      if (!may_lack || is_there(list[i]))
        check_shape(list[i], c10::str(name, "[", i, "]").c_str(),
                    {x_.size(0), x_.size(1), hidden_});
  }
  Tensor output_gradient(const Tensor& given) const {
    if (!given.defined()) return {};
    const Tensor dy = steps_of(given, "dy");
    check_shape(dy, "dy", {x_.size(0), x_.size(1), hidden_ * static_cast<int64_t>(directions_)});
    return dy;
  }
  void check_gradients(const Tensors& list) const {
    require(list.size() == params_.size(), "dparams must have ", params_.size(),
            " tensors, but has ", list.size());
  }
  void put_gradients(const Tensors& list, size_t cell, const Tensors& found) const {
    for (size_t k = 0; k < step_; ++k) put(list[cell * step_ + k], found[k], "dparams");
  }

 private:
  void check_steps() const {
    require_shape(x_.size(0) > 0, "input must have a step, but has shape ", x_.sizes());
  }

  Tensors params_;
  size_t step_, directions_, cells_ = 0;
  bool batch_first_;
  int64_t hidden_ = 0;
  Tensor x_, mask_;
};

// Runs the cells of a layer on the same input; their results side by side are the next one.
template <class Cell>
Tensor run_layers(const Layers& layers, const Cell& cell) {
  Tensor x = layers.x();
  for (size_t first = 0; first < layers.cells(); first += layers.directions()) {
    Tensors made;
    for (size_t d = 0; d < layers.directions(); ++d) made.push_back(cell(first + d, x));
    x = at::cat(made, 2);
  }
  return x;
}

// The gradients of the cells' inputs, from the last layer to the first. `cell` takes the input of
// its layer, which is what the layer below saved, and the gradient of its result.
template <class Cell>
Tensor run_back(const Layers& layers, const Tensors& saved_h, Tensor dy, const Cell& cell) {
  for (size_t first = layers.cells(); first > 0; first -= layers.directions()) {
    const size_t begin = first - layers.directions();
    const Tensor x =
        begin == 0
            ? layers.x()
            : wide(at::cat(Tensors(saved_h.begin() + static_cast<long>(begin - layers.directions()),
                                   saved_h.begin() + static_cast<long>(begin)),
                           2));
    Tensor dx;
    for (size_t d = 0; d < layers.directions(); ++d) {
      const Tensor part = cell(begin + d, x, layers.of_direction(dy, d));
      dx = dx.defined() ? dx + part : part;
    }
    dy = dx;
  }
  return dy;
}

// In training the steps are saved; otherwise the lists may be NULL or empty, or have tensors
// without dims, as those of torch_npu.
struct Saved {
  const Tensors& list;
  const char* name;
  void check(const Layers& layers) const {
    if (!list.empty()) layers.check_saved(list, name, true);
  }
  void put_at(size_t cell, const Tensor& steps) const {
    if (!list.empty() && is_there(list[cell])) put(list[cell], steps, name);
  }
};

void lstm_layers(Tensor input, Tensors params, Tensors hx, Tensor batches, bool has_bias,
                 int64_t count, double dropout, bool train, bool bidirectional, bool batch_first,
                 Out output, Out hy, Out cy, Tensors i_out, Tensors j_out, Tensors f_out,
                 Tensors o_out, Tensors h_out, Tensors c_out, Tensors tanh_out) {
  const Layers layers(input, params, 4, has_bias, count, dropout, train, bidirectional, batch_first,
                      batches);
  require(hx.empty() || hx.size() == 2, "hx must have 2 tensors, h0 and c0, but has ", hx.size());
  const Saved saved[] = {{i_out, "iOut"}, {j_out, "jOut"}, {f_out, "fOut"},       {o_out, "oOut"},
                         {h_out, "hOut"}, {c_out, "cOut"}, {tanh_out, "tanhCOut"}};
  for (const Saved& list : saved) list.check(layers);
  const Tensor h0 = hx.empty() ? Tensor() : hx[0], c0 = hx.empty() ? Tensor() : hx[1];
  Tensors h, c;
  const Tensor y = run_layers(layers, [&](size_t cell, const Tensor& x) {
    Tensor bias = layers.bias(cell, 0);
    if (bias.defined()) bias = bias + layers.bias(cell, 1);
    const LstmSteps all =
        lstm_steps(x, layers.weight_input(cell), layers.weight_hidden(cell), bias, layers.mask(),
                   layers.of_cell(h0, "h0", cell), layers.of_cell(c0, "c0", cell), LSTM_ORDER, 0,
                   layers.direction(cell));
    const Tensor steps[] = {all.i, all.j, all.f, all.o, all.h, all.c, all.tanh_c};
    for (size_t k = 0; k < 7; ++k) saved[k].put_at(cell, steps[k]);
    h.push_back(layers.last(cell, all.h));
    c.push_back(layers.last(cell, all.c));
    return all.y;
  });
  layers.put_steps(output, y);
  hy = at::stack(h);
  cy = at::stack(c);
}

void lstm_layers_grad(Tensor input, Tensors hx, Tensors params, Tensor dy, Tensor dh, Tensor dc,
                      Tensors i, Tensors g, Tensors f, Tensors o, Tensors h, Tensors c,
                      Tensors tanh_c, Tensor batches, bool has_bias, int64_t count, double dropout,
                      bool train, bool bidirectional, bool batch_first, Bools, Out dx, Out dh_first,
                      Out dc_first, Tensors dparams) {
  const Layers layers(input, params, 4, has_bias, count, dropout, train, bidirectional, batch_first,
                      batches);
  require(hx.size() == 2, "hx must have 2 tensors, h0 and c0, but has ", hx.size());
  for (const auto& [list, name] : {std::pair(&i, "i"),
                                   {&g, "g"},
                                   {&f, "f"},
                                   {&o, "o"},
                                   {&h, "h"},
                                   {&c, "c"},
                                   {&tanh_c, "tanhc"}})
    layers.check_saved(*list, name);
  layers.check_gradients(dparams);
  Tensors first_h(layers.cells()), first_c(layers.cells());
  const Tensor found = run_back(
      layers, h, layers.output_gradient(dy),
      [&](size_t cell, const Tensor& x, const Tensor& gradient) {
        const LstmGradient sum = lstm_backward(
            x, layers.weight_input(cell), layers.weight_hidden(cell),
            layers.of_cell(hx[0], "h0", cell), layers.of_cell(hx[1], "c0", cell), h[cell], c[cell],
            gradient, layers.of_cell(dh, "dh", cell), layers.of_cell(dc, "dc", cell),
            {i[cell], g[cell], f[cell], o[cell], tanh_c[cell]}, layers.mask(), LSTM_ORDER,
            layers.direction(cell));
        layers.put_gradients(dparams, cell,
                             {sum.weight_input.t(), sum.weight_hidden.t(), sum.bias, sum.bias});
        first_h[cell] = sum.h;
        first_c[cell] = sum.c;
        return sum.x;
      });
  layers.put_steps(dx, found);
  dh_first = at::stack(first_h);
  dc_first = at::stack(first_c);
}

void gru_layers(Tensor input, Tensors params, Tensor hx, Tensor batches, bool has_bias,
                int64_t count, double dropout, bool train, bool bidirectional, bool batch_first,
                Out output, Out hy, Tensors r_out, Tensors z_out, Tensors n_out, Tensors m_out,
                Tensors h_out) {
  const Layers layers(input, params, 3, has_bias, count, dropout, train, bidirectional, batch_first,
                      batches);
  const Saved saved[] = {
      {r_out, "rOut"}, {z_out, "zOut"}, {n_out, "nOut"}, {m_out, "hnOut"}, {h_out, "hOut"}};
  for (const Saved& list : saved) list.check(layers);
  Tensors h;
  const Tensor y = run_layers(layers, [&](size_t cell, const Tensor& x) {
    const GruSteps all =
        gru_steps(x, layers.weight_input(cell), layers.weight_hidden(cell), layers.bias(cell, 0),
                  layers.bias(cell, 1), layers.of_cell(hx, "hx", cell), layers.mask(), GRU_ORDER,
                  layers.direction(cell));
    const Tensor steps[] = {all.r, all.z, all.n, all.m, all.h};
    for (size_t k = 0; k < 5; ++k) saved[k].put_at(cell, steps[k]);
    h.push_back(layers.last(cell, all.h));
    return layers.mask().defined() ? all.h * layers.mask() : all.h;
  });
  layers.put_steps(output, y);
  hy = at::stack(h);
}

void gru_layers_grad(Tensor input, Tensors params, Tensor hx, Tensor dy, Tensor dh, Tensors r,
                     Tensors z, Tensors n, Tensors m, Tensors h, Tensor batches, bool has_bias,
                     int64_t count, bool bidirectional, bool batch_first, Out dx, Out dh_first,
                     Tensors dparams) {
  const Layers layers(input, params, 3, has_bias, count, 0, true, bidirectional, batch_first,
                      batches);
  for (const auto& [list, name] :
       {std::pair(&r, "r"), {&z, "z"}, {&n, "n"}, {&m, "h_n"}, {&h, "h"}})
    layers.check_saved(*list, name);
  layers.check_gradients(dparams);
  Tensors first(layers.cells());
  const Tensor found = run_back(
      layers, h, layers.output_gradient(dy),
      [&](size_t cell, const Tensor& x, const Tensor& gradient) {
        const GruGradient sum = gru_backward(
            x, layers.weight_input(cell), layers.weight_hidden(cell),
            layers.of_cell(hx, "hx", cell), h[cell], gradient, layers.of_cell(dh, "dh", cell),
            z[cell], r[cell], n[cell], m[cell], layers.mask(), GRU_ORDER, layers.direction(cell));
        layers.put_gradients(
            dparams, cell,
            {sum.weight_input.t(), sum.weight_hidden.t(), sum.bias_input, sum.bias_hidden});
        first[cell] = sum.h;
        return sum.x;
      });
  layers.put_steps(dx, found);
  dh_first = at::stack(first);
}

}  // namespace

const Composite recurrent_layer_composites[] = {
    ENTRY(lstm_layers), ENTRY(lstm_layers_grad), ENTRY(gru_layers), ENTRY(gru_layers_grad), {},
};

}  // namespace openaclnn::aten
