// Package gpu is what planning for CUDA and for OpenCL has in common: the geometry of
// every step, its kernels' arguments, the order of weights, and the choice of the
// fastest of several kernels. Nothing here asks a driver, so all of it is compiled and
// tested everywhere. A planned kernel is data; a backend uploads its constants once it
// has been chosen.
package gpu
