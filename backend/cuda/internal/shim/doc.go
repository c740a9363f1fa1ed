// Package shim lets a program use gorgonia.org/cu without linking against
// libcuda, which is opened when it is first needed. It is empty in builds without
// the tag cuda.
package shim
