package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// checks are other ways to compute the outputs. Each gives the results of its ways to
// compare, which must be the bits of the first result.
var checks = map[string]func(j *job, compare func(what string, values [][]float32)) error{
	"roundtrip": (*job).checkRoundTrip,
	"isas":      (*job).checkISAs,
	"batch":     (*job).checkBatch,
	"threads":   (*job).checkThreads,
	"reference": (*job).checkReference,
}

// respond converts the model of a request and runs it.
func respond(ctx context.Context, q *request) *answer {
	a := &answer{Status: refused, Stage: "convert"}
	refuse := func(err error) *answer {
		a.Message, a.Obstacles = err.Error(), obstacles(err)
		var bug interface{ Panicked() (stack []byte) } // that the importer has recovered from
		if errors.As(err, &bug) {
			a.Status, a.Message = failed, fmt.Sprintf("panic: %s\n%s", a.Message, bug.Panicked())
		}
		return a
	}
	net, report, err := convert(ctx, q.model, q.Options)
	if err != nil {
		return refuse(err)
	}
	a.Report = report
	a.Stage, a.Status = "inputs", failed
	j, err := newJob(ctx, net, q.Inputs, q.data)
	if err != nil {
		return refuse(err)
	}
	a.Stage, a.Status = "lower", refused
	s, err := j.open(j.images, 1, "")
	if err != nil {
		return refuse(err)
	}
	defer s.Close()
	a.Stage, a.Status = "run", failed
	values, err := j.run(s, j.images)
	if err != nil {
		return refuse(err)
	}
	for i, p := range j.ports.Outputs {
		described, data, err := fromNPY(p.Name, p.Array(j.images, values[i]))
		if err != nil {
			return refuse(err)
		}
		a.Outputs = append(a.Outputs, described)
		a.data = append(a.data, data)
	}
	for _, name := range q.Checks {
		a.Stage = name
		check := checks[name]
		if check == nil {
			return refuse(fmt.Errorf("no check is called %q", name))
		}
		err := check(j, func(what string, other [][]float32) {
			a.Differences = append(a.Differences, j.differences(what, values, other)...)
		})
		if err != nil { // what ran once has to run again
			a.data, a.Outputs = nil, nil
			return refuse(fmt.Errorf("check %s: %w", name, err))
		}
	}
	a.Status, a.Stage = ok, ""
	return a
}

// differences says where other values have not the same bits. NaNs are all the same one.
func (j *job) differences(what string, first, other [][]float32) []string {
	var list []string
	for i, p := range j.ports.Outputs {
		count, at := 0, -1
		for k, v := range first[i] {
			w := other[i][k]
			if math.Float32bits(v) != math.Float32bits(w) && (v == v || w == w) {
				if count++; at < 0 {
					at = k
				}
			}
		}
		if count > 0 {
			list = append(list, fmt.Sprintf("%s: output %s differs at %d of %d values, first at %d: %v, not %v",
				what, p.Name, count, len(first[i]), at, other[i][at], first[i][at]))
		}
	}
	return list
}

// again runs the model in a new session.
func (j *job) again(images, threads int, isa string) ([][]float32, error) {
	s, err := j.open(images, threads, isa)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return j.run(s, images)
}

// checkRoundTrip writes the network as a .bcnn file and reads it.
func (j *job) checkRoundTrip(compare func(string, [][]float32)) error {
	data, err := modelfile.Encode(j.net)
	if err != nil {
		return err
	}
	net, err := modelfile.Read(j.ctx, data, modelfile.Options{})
	if err != nil {
		return err
	}
	other := *j
	other.net = net
	values, err := other.again(j.images, 1, "")
	if err == nil {
		compare("roundtrip", values)
	}
	return err
}

// checkISAs runs every instruction set of the processor.
func (j *job) checkISAs(compare func(string, [][]float32)) error {
	for _, d := range bitcnn.Devices() {
		if d.ID != "cpu" {
			continue
		}
		for _, isa := range d.ISAs {
			values, err := j.again(j.images, 1, isa)
			if err != nil {
				return fmt.Errorf("%s: %w", isa, err)
			}
			compare("isa "+isa, values)
		}
	}
	return nil
}

// checkBatch runs the images one by one, and a part of them at a time.
func (j *job) checkBatch(compare func(string, [][]float32)) error {
	sizes := []int{1, (j.images + 1) / 2}
	for _, n := range slices.Compact(sizes) {
		if n == j.images {
			continue
		}
		values, err := j.again(n, 1, "")
		if err != nil {
			return err
		}
		compare(fmt.Sprintf("batch %d", n), values)
	}
	return nil
}

// checkThreads runs the model with two threads.
func (j *job) checkThreads(compare func(string, [][]float32)) error {
	values, err := j.again(j.images, 2, "")
	if err == nil {
		compare("2 threads", values)
	}
	return err
}

// checkReference runs the reference executor, which knows no kernels, on the plan as it
// is and on the one without fused steps.
func (j *job) checkReference(compare func(string, [][]float32)) error {
	for _, unfused := range []bool{false, true} {
		plan, err := lower.Network(j.ctx, j.net, lower.Options{Unfused: unfused})
		if err != nil {
			return err
		}
		out, err := ref.RunAll(j.ctx, plan, j.in, nil)
		if err != nil {
			return err
		}
		values := make([][]float32, len(out))
		for i, p := range j.ports.Outputs {
			values[i] = make([]float32, j.images*p.Shape.Values())
			p.Values(values[i], out[i])
			p.Results(values[i])
		}
		compare(fmt.Sprintf("reference, unfused %v", unfused), values)
	}
	return nil
}
