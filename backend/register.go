package backend

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bitcnn/bitcnn/backend/driver"
)

// EnvDevice is the environment variable that names the device where a program
// is not told one.
const EnvDevice = "BCNN_DEVICE"

var registry struct {
	sync.Mutex
	backends []driver.Backend
}

// Backend is one way to reach devices, such as "cpu" or "cuda".
type Backend struct{ driver driver.Backend }

// Name returns the name of the backend, as Open takes it.
func (b Backend) Name() string { return b.driver.Name() }

// Devices lists the devices, starting the driver on first use. Where there are none
// the error wraps ErrUnavailable and says what to install or how to rebuild. Beside
// devices an error says why others that are there cannot be used.
func (b Backend) Devices() ([]*Device, error) {
	found, err := b.driver.Devices()
	devices := make([]*Device, len(found))
	for i, d := range found {
		devices[i] = NewDevice(d)
	}
	return devices, err
}

// Register makes a backend known to Backends, Devices and Open. It takes the
// place of an earlier one with the same name.
func Register(b driver.Backend) {
	registry.Lock()
	defer registry.Unlock()
	registry.backends = slices.DeleteFunc(registry.backends, func(old driver.Backend) bool { return old.Name() == b.Name() })
	registry.backends = append(registry.backends, b)
	slices.SortFunc(registry.backends, func(x, y driver.Backend) int { return cmp.Compare(x.Name(), y.Name()) })
}

// Backends returns all registered backends in the order of their names, those
// included whose Devices will say why they are not available.
func Backends() []Backend {
	registry.Lock()
	defer registry.Unlock()
	all := make([]Backend, len(registry.backends))
	for i, b := range registry.backends {
		all[i] = Backend{b}
	}
	return all
}

// Devices returns the devices of all backends, in the order of their backends'
// names.
func Devices() []*Device {
	var all []*Device
	for _, b := range Backends() {
		devices, _ := b.Devices() // the error is about others
		all = append(all, devices...)
	}
	return all
}

// Open returns a device by name:
//
//	"auto"              the best device there is
//	"cuda"              the first device of a backend
//	"cuda:1"            a certain device of a backend, counted from 0
//	"opencl:rusticl"    a device by its ID, where that has a name: by another driver than
//	                    the one that has the number
//	""                  what the environment variable BCNN_DEVICE says, else "auto"
//
// Auto prefers discrete GPUs to integrated ones and those to the CPU, and CUDA
// to OpenCL. It never picks an emulated device, and starts no driver that has
// nothing it would pick. A device that is asked for by
// name is opened or an error: nothing takes its place.
func Open(name string) (*Device, error) {
	asked := name
	if name == "" {
		name = os.Getenv(EnvDevice)
		asked = name + " (from " + EnvDevice + ")"
	}
	if name == "" || name == "auto" {
		return openAuto()
	}
	d, err := openNamed(name)
	if err != nil {
		return nil, &Error{Device: asked, Err: err}
	}
	return d, nil
}

func openAuto() (*Device, error) {
	var best *Device
	for _, b := range Backends() {
		// Backends come in the order of their names, CUDA before OpenCL, so a
		// discrete GPU has no better one behind it.
		if best != nil && best.Info().Kind == DiscreteGPU {
			break
		}
		if p, ok := b.driver.(driver.Prober); ok && !p.MayHaveGPU() {
			continue
		}
		devices, _ := b.Devices()
		for _, d := range devices {
			kind := d.Info().Kind
			if kind == Emulated || kind == CPU && b.Name() != "cpu" {
				continue
			}
			if best == nil || kind < best.Info().Kind {
				best = d
			}
		}
	}
	if best == nil {
		return nil, &Error{Device: "auto", Err: fmt.Errorf("%w: no device: %s", ErrUnavailable, inventory())}
	}
	return best, nil
}

func openNamed(name string) (*Device, error) {
	backendName, number, numbered := strings.Cut(name, ":")
	all := Backends()
	i := slices.IndexFunc(all, func(b Backend) bool { return b.Name() == backendName })
	index := 0
	if numbered {
		var err error
		index, err = strconv.Atoi(number)
		if err != nil || index < 0 || number != strconv.Itoa(index) {
			if d := called(all, i, name); d != nil {
				return d, nil
			}
			return nil, fmt.Errorf("%q is not a device number, want 0, 1 and so on", number)
		}
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, inventory())
	case i < 0:
		return nil, fmt.Errorf("%w: no such device, want auto%s", ErrUnavailable, names(all))
	}
	devices, err := all[i].Devices()
	switch {
	case index < len(devices):
		return devices[index], nil
	case err != nil:
		return nil, err
	case len(devices) == 0:
		return nil, fmt.Errorf("%w: it has no devices", ErrUnavailable)
	}
	return nil, fmt.Errorf("%w: the last device of this backend is %s", ErrUnavailable, devices[len(devices)-1].Info().ID)
}

// called returns the device of a backend that has a name for a number, or nil.
func called(all []Backend, i int, id string) *Device {
	if i < 0 {
		return nil
	}
	devices, _ := all[i].Devices() // the error is about others
	if k := slices.IndexFunc(devices, func(d *Device) bool { return d.Info().ID == id }); k >= 0 {
		return devices[k]
	}
	return nil
}

// names lists the names of backends, for a sentence that has begun a list.
func names(backends []Backend) string {
	list := ""
	for _, b := range backends {
		list += ", " + b.Name()
	}
	return list
}

// inventory lists what can be opened, and why the rest cannot.
func inventory() string {
	var items []string
	for _, b := range Backends() {
		devices, err := b.Devices()
		if err == nil && len(devices) == 0 {
			err = errors.New("no devices")
		}
		if err != nil {
			items = append(items, fmt.Sprintf("%s (%v)", b.Name(), err))
		}
		for _, d := range devices {
			items = append(items, fmt.Sprintf("%s (%s)", d.Info().ID, d.Info().Name))
		}
	}
	if len(items) == 0 {
		return "no backend: import github.com/bitcnn/bitcnn/backend/all"
	}
	return strings.Join(items, ", ")
}
