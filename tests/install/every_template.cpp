// Uses every template that is instantiated in the library, for all of its types.

#include <reel/reel.h>

#include <cstdio>

using namespace reel;

template <class T>
bool reads() {
  Tensor x = ones({1}, {.dtype = dtype_of<T>()});
  return static_cast<float>(x.item<T>()) == 1 && static_cast<float>(x.to_vector<T>()[0]) == 1 &&
         static_cast<float>(x.data<T>()[0]) == 1 && static_cast<float>(x.strided_data<T>()[0]) == 1 &&
         static_cast<float>(x.write<T>()[0]) == 1;
}

template <int rank>
bool computes() {
  Shape shape{2, 3};
  for (int i = 0; i < rank; ++i) shape.push_back(4);
  nn::Convolution<rank> convolution(3, 5, 1);
  nn::TransposedConvolution<rank> back(5, 3, 1);
  nn::BatchNorm<rank> batch_norm(3);
  nn::InstanceNorm<rank> instance_norm(3);
  return instance_norm(batch_norm(back(convolution(ones(shape))))).shape() == shape;
}

int main() {
  bool all_read = reads<float>() && reads<double>() && reads<BFloat16>() && reads<Float16>() && reads<int>() &&
                  reads<long>() && reads<unsigned char>() && reads<signed char>() && reads<short>() && reads<bool>();
  bool converts = ones({1}).item<long long>() == 1 && ones({1}).item() == 1;
  bool all_compute = computes<1>() && computes<2>() && computes<3>();
  std::puts(all_read && converts && all_compute ? "all are right" : "one is wrong");
}
