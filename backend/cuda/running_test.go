//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"context"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// running is an executable as users have it, with what is inside.
type running struct {
	*executable
	outside *backend.Executable
}

func (r *running) run(ctx context.Context, out, in bcnn.Tensor) error {
	return r.outside.Run(ctx, []bcnn.Tensor{out}, []bcnn.Tensor{in})
}

func (r *running) Close() error { return r.outside.Close() }

// keeper is a device that keeps the executable it has made.
type keeper struct {
	*device
	made *executable
}

func (k *keeper) Compile(ctx context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	e, err := k.device.Compile(ctx, plan, c)
	k.made, _ = e.(*executable)
	return e, err
}

// compile compiles as users do.
func compile(ctx context.Context, d *device, plan *plan.Plan, opts backend.Options) (*running, error) {
	k := &keeper{device: d}
	exe, err := backend.NewDevice(k).Compile(ctx, plan, opts)
	if err != nil {
		return nil, err
	}
	return &running{k.made, exe}, nil
}
