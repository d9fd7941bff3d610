// RMS normalisation, y = x / sqrt(mean(x^2) + eps), and its pullback, over the last
// dimension. Compiled with the headers of `verax.ffi.include_dir()`:
//
//     g++ -std=c++17 -O2 -fPIC -shared -I$INCLUDE rms_norm.cc -o librms_norm.so

#include <cmath>
#include <cstdint>

#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;
using F32Result = ffi::ResultBuffer<ffi::F32>;

static ffi::Error Forward(float eps, F32 x, F32Result y, F32Result scale) {
  auto dims = x.dimensions();
  if (dims.size() == 0) return ffi::Error::InvalidArgument("RmsNorm takes a vector");
  int64_t size = dims.back();
  int64_t rows = size ? x.element_count() / size : 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.typed_data() + row * size;
    float* out = y->typed_data() + row * size;
    float sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += in[i] * in[i];
    float factor = 1.0f / std::sqrt(sum / size + eps);
    scale->typed_data()[row] = factor;
    for (int64_t i = 0; i < size; ++i) out[i] = in[i] * factor;
  }
  return ffi::Error::Success();
}

static ffi::Error Backward(F32 scale, F32 x, F32 ct_y, F32Result ct_x) {
  int64_t size = x.dimensions().back();
  int64_t rows = size ? x.element_count() / size : 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.typed_data() + row * size;
    const float* ct = ct_y.typed_data() + row * size;
    float* out = ct_x->typed_data() + row * size;
    float factor = scale.typed_data()[row], dot = 0;
    for (int64_t i = 0; i < size; ++i) dot += in[i] * ct[i];
    float mean = dot * factor * factor / size;
    for (int64_t i = 0; i < size; ++i) out[i] = factor * (ct[i] - mean * in[i]);
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, Forward,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<F32>()
                                  .Ret<F32>()
                                  .Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNormBackward, Backward,
                              ffi::Ffi::Bind()
                                  .Arg<F32>()
                                  .Arg<F32>()
                                  .Arg<F32>()
                                  .Ret<F32>());
