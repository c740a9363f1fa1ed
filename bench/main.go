// Command bench compares the binary operators of this module with other ways to
// compute them: OpenBLAS, oneDNN in float32 and int8, and a plain binary matrix
// product, as bench/peers does it. It first checks on small cases that all
// compute the same operator, then lets them take turns with what 'bcnn bench --ops'
// measures, on one thread. make bench-peers builds and runs it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var f flags
	flag.StringVar(&f.peers, "peers", "build/peers", "the program that bench/peers makes")
	flag.StringVar(&f.isa, "isa", "", "instruction set of bcnn")
	flag.StringVar(&f.group, "group", "bitflow", "group of operators: "+strings.Join(zoo.OperatorGroups(), ", "))
	flag.IntVar(&f.rounds, "rounds", 5, "how often both sides take turns")
	flag.Float64Var(&f.seconds, "seconds", 0.3, "how long each peer is timed in a round")
	asJSON := flag.Bool("json", false, "print one JSON object per operator and peer")
	flag.Parse()
	if err := compare(ctx, f, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type flags struct {
	peers, isa, group string
	rounds            int
	seconds           float64
}

func compare(ctx context.Context, f flags, asJSON bool) error {
	if f.rounds < 1 || !(f.seconds > 0) {
		return fmt.Errorf("-rounds %d, -seconds %v: want more than 0", f.rounds, f.seconds)
	}
	var ops []operator
	for _, o := range zoo.Operators() {
		if o.Group == f.group {
			if op, ok := newOperator(o); ok {
				ops = append(ops, op)
			}
		}
	}
	if len(ops) == 0 {
		return fmt.Errorf("-group %q: want one of %s", f.group, strings.Join(zoo.OperatorGroups(), ", "))
	}
	dev, err := backend.Open("cpu")
	if err != nil {
		return err
	}
	for _, c := range smallCases() {
		if err := check(ctx, dev, f.peers, c); err != nil {
			return fmt.Errorf("check of %s: %w", c, err)
		}
	}
	var rows []row
	for _, op := range ops {
		r, err := timeBoth(ctx, dev, f, op)
		if err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		rows = append(rows, r...)
		if asJSON {
			for _, r := range r {
				if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
					return err
				}
			}
		}
	}
	if asJSON {
		return nil
	}
	versions, err := lines[map[string]string](ctx, nil, f.peers, "versions")
	if err != nil {
		return err
	}
	fmt.Printf("%s; OpenBLAS: %s; oneDNN %s; C++ compiler %s\n", dev.Info().Name,
		versions[0]["openblas"], versions[0]["onednn"], versions[0]["compiler"])
	fmt.Printf("one thread; ms of the shortest run in %d rounds; in brackets how many times as long as bcnn took (%s)\n\n", f.rounds, rows[0].ISA)
	_, err = os.Stdout.WriteString(table(rows))
	return err
}
