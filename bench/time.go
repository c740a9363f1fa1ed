package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/internal/measure"
)

// row compares one peer with bcnn on one operator.
type row struct {
	Op     string `json:"op"`
	ISA    string `json:"isa"`
	Peer   string `json:"peer"`
	Detail string `json:"detail,omitempty"`
	Rounds int    `json:"rounds"`
	// Times of the shortest run in all rounds. That of the peer is processor
	// time, that of bcnn by the clock.
	Ours   float64 `json:"bcnn_ms"`
	Theirs float64 `json:"peer_ms"`
	Ratio  float64 `json:"ratio"` // Theirs by Ours
}

// timed is a line of peers time.
type timed struct {
	Peer   string  `json:"peer"`
	Detail string  `json:"detail"`
	Error  string  `json:"error"`
	MS     float64 `json:"min_ms"`
}

// operatorRuns is the number of timed runs of an operator in a round, at the most.
const operatorRuns = 200

// timeBoth lets both sides take turns and returns a row for each peer. The
// shortest run counts, which other programs disturb the least.
func timeBoth(ctx context.Context, dev *backend.Device, f flags, op operator) ([]row, error) {
	opts := measure.Options{Options: backend.Options{MaxBatch: 1, Threads: 1, ISA: f.isa}, Runs: operatorRuns}
	var isa string
	var ours []float64
	theirs := map[string][]float64{}
	var peers []timed
	for range f.rounds {
		mine, err := measure.Operator(ctx, dev, op.source, opts, measure.NewRoofline(dev, opts.Options))
		if err != nil {
			return nil, err
		}
		isa = mine.ISA
		ours = append(ours, mine.Min)
		other, err := lines[timed](ctx, nil, f.peers, append([]string{"time", fmt.Sprint(f.seconds)}, op.args()...)...)
		if err != nil {
			return nil, err
		}
		peers = slices.DeleteFunc(other, func(t timed) bool { return t.Error != "" })
		for _, t := range peers {
			theirs[t.Peer] = append(theirs[t.Peer], t.MS)
		}
	}
	var rows []row
	for _, t := range peers {
		ms := theirs[t.Peer]
		if len(ms) != f.rounds {
			return nil, fmt.Errorf("%s took part in %d of %d rounds", t.Peer, len(ms), f.rounds)
		}
		r := row{
			Op: op.name, ISA: isa, Peer: t.Peer, Detail: t.Detail, Rounds: f.rounds,
			Ours: slices.Min(ours), Theirs: slices.Min(ms),
		}
		if r.Ours <= 0 {
			return nil, fmt.Errorf("bcnn took %v ms", r.Ours)
		}
		r.Ratio = r.Theirs / r.Ours
		rows = append(rows, r)
	}
	return rows, nil
}

// table has a line for each operator and a column for each peer.
func table(rows []row) string {
	var ops, peers []string
	cells := map[[2]string]row{}
	for _, r := range rows {
		if !slices.Contains(ops, r.Op) {
			ops = append(ops, r.Op)
		}
		if !slices.Contains(peers, r.Peer) {
			peers = append(peers, r.Peer)
		}
		cells[[2]string{r.Op, r.Peer}] = r
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "operator\tbcnn\t%s\n", strings.Join(peers, "\t"))
	for _, op := range ops {
		first := rows[slices.IndexFunc(rows, func(r row) bool { return r.Op == op })]
		line := fmt.Sprintf("%s\t%.4f", op, first.Ours)
		for _, peer := range peers {
			if r, ok := cells[[2]string{op, peer}]; ok {
				line += fmt.Sprintf("\t%.3f (%.1f)", r.Theirs, r.Ratio)
			} else {
				line += "\t-"
			}
		}
		fmt.Fprintln(w, line)
	}
	w.Flush()
	return text.String()
}
