package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/fpmode"
)

// Device executes plans. It is safe for concurrent use.
type Device struct{ driver driver.Device }

// NewDevice returns a device that no backend lists, for tests of a backend.
// Others come from Open and Devices.
func NewDevice(d driver.Device) *Device { return &Device{d} }

// Driver returns what executes the plans, for tests that put something in front of it.
func (d *Device) Driver() driver.Device { return d.driver }

// Info describes the device.
func (d *Device) Info() Info { return d.driver.Info() }

// Compile uploads the weights and reserves all memory. A *plan.UnsupportedError,
// which matches errors.ErrUnsupported, lists every step that has no kernel; the error
// wraps ErrTooLarge where the plan needs more memory than opts.Limits or the
// device allow. When ctx ends, its error is returned as soon as what is in hand is
// done: the layout of the weights of a step, the compilation of a program, the
// measurement of a kernel. All errors are *Error.
func (d *Device) Compile(ctx context.Context, plan *plan.Plan, opts Options) (*Executable, error) {
	if d == nil || d.driver == nil {
		return nil, errNoDevice
	}
	info := d.driver.Info()
	e, err := d.compile(ctx, info, plan, opts)
	if err != nil {
		return nil, &Error{Device: info.ID, Op: "compile", Err: err}
	}
	return e, nil
}

func (d *Device) compile(ctx context.Context, info Info, plan *plan.Plan, opts Options) (*Executable, error) {
	defer fpmode.Enter().Leave()
	if ctx == nil {
		return nil, errNoContext
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	config, err := opts.config(info)
	if err != nil {
		return nil, err
	}
	if err := plan.Check(); err != nil {
		return nil, err
	}
	e := newExecutable(info.ID, plan, config.MaxBatch, opts)
	taps, err := e.makeTaps(config)
	if err != nil {
		return nil, err
	}
	config.ArenaBytes -= taps
	if e.engine, err = d.driver.Compile(ctx, plan, config); err != nil {
		return nil, err
	}
	e.choices = e.engine.Explain()
	return e, nil
}

// Peak measures the products of ±1 values per second that a loop of nothing but the
// arithmetic of the kernels reaches, with the Threads, the ISA and the Kernels of
// opts, so that a benchmark can say which fraction of it a step reaches; 0 where times
// mean nothing, as on an emulated device. Clock rates and load change: measure it
// shortly before or after. The error matches errors.ErrUnsupported where the device
// cannot measure it.
func (d *Device) Peak(opts Options) (perSecond float64, err error) {
	return d.measure("peak", opts, driver.PeakMeter.Peak)
}

// Bandwidth measures the bytes per second at which size bytes are read over and over,
// as Peak does.
func (d *Device) Bandwidth(opts Options, size int64) (perSecond float64, err error) {
	return d.measure("bandwidth", opts, func(m driver.PeakMeter, c driver.Config) (float64, error) {
		if size < 1 {
			return 0, fmt.Errorf("%d bytes", size)
		}
		return m.Bandwidth(c, size)
	})
}

func (d *Device) measure(op string, opts Options, f func(driver.PeakMeter, driver.Config) (float64, error)) (float64, error) {
	if d == nil || d.driver == nil {
		return 0, errNoDevice
	}
	info := d.driver.Info()
	rate, err := 0.0, errors.ErrUnsupported
	if meter, ok := d.driver.(driver.PeakMeter); ok {
		var c driver.Config
		if c, err = opts.config(info); err == nil {
			rate, err = f(meter, c)
		}
	}
	if err != nil {
		return 0, &Error{Device: info.ID, Op: op, Err: err}
	}
	return rate, nil
}
