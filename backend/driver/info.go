package driver

import "fmt"

// Kind is what sort of device a device is; auto prefers them in this order.
type Kind int

const (
	DiscreteGPU Kind = iota
	IntegratedGPU
	CPU
	// Emulated devices are for tests: auto never picks them, nor a CPU that is
	// reached through a GPU interface, such as OpenCL on PoCL.
	Emulated
)

func (k Kind) String() string {
	names := [...]string{"discrete GPU", "integrated GPU", "CPU", "emulated"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// Info describes a device and what it takes of options.
type Info struct {
	ID     string // as backend.Open takes it: "cpu", "cuda:0"
	Name   string // the product's name
	Kind   Kind
	Detail string // "avx2, 8 threads", "sm_90"
	Memory int64  // bytes, 0 if unknown

	MaxBatch int // images that a Run can count
	// MaxThreads is the largest number of threads that may be asked for; 0 where
	// threads are no choice, as on a GPU.
	MaxThreads int
	// ISAs are the instruction sets, the best first. Only the CPU has a choice.
	ISAs []string
	// MissingISAs are the instruction sets that the processor has and the program may not use, with
	// the reason.
	MissingISAs map[string]string
	// Kernels are the names of the variants of kernels. Only GPUs have a choice. A
	// step that has no kernel of the variant that is asked for takes another one.
	Kernels []string
	// Refused says what the driver has refused in the last 30 days, and was done in another
	// way, a line each.
	Refused []string
}

// Choice is how a step is executed, in words.
type Choice struct {
	Kernel string // "wide bits, joined rows"
	Tile   string // "24 rows × 64 channels, 4 tiles"; empty where there are none
	Why    string
	// With is the step whose kernel, or whose tiles, compute this one too; empty if none does.
	With string
}
