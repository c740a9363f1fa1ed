package bcnn

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Obstacle is a node of a graph that an importer cannot make layers of, or an input.
type Obstacle struct {
	Node  string // its name in the file
	Op    string // its operator; "" for an input
	Index int    // in the graph; −1 for an input
	// Err is the reason.
	Err error
	// Option is the field of the importer's Options that gets around it, "" if there is none.
	Option string
	// Advice is what to do about it, "" where the reason says it.
	Advice string
}

// String names the node, the reason and what to do.
func (o Obstacle) String() string { return o.Text(o.Advice) }

// Text is String with other advice, such as flags of a command in place of Options.
func (o Obstacle) Text(advice string) string {
	s := fmt.Sprintf("node %s (%s, index %d): %v", text.Quote(o.Node), o.Op, o.Index, o.Err)
	if o.Index < 0 {
		s = fmt.Sprintf("input %s: %v", text.Quote(o.Node), o.Err)
	}
	if advice != "" {
		s += "; " + advice
	}
	return s
}

// ObstaclesError is the error of an import that nodes of the graph stand in the way
// of. It has all of them, as far as they can be seen behind each other: in the
// order of the graph, at least one.
type ObstaclesError struct {
	Obstacles []Obstacle
}

// maxListed is how many obstacles the text of an error lists.
const maxListed = 100

func (e *ObstaclesError) Error() string {
	if len(e.Obstacles) == 1 {
		return e.Obstacles[0].String()
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%d nodes stand in the way", len(e.Obstacles))
	for i, o := range e.Obstacles {
		if i == maxListed {
			fmt.Fprintf(&s, "\n  and %d more", len(e.Obstacles)-i)
			break
		}
		fmt.Fprintf(&s, "\n  %v", o)
	}
	return s.String()
}

// Unwrap returns the reasons.
func (e *ObstaclesError) Unwrap() []error {
	list := make([]error, len(e.Obstacles))
	for i, o := range e.Obstacles {
		list[i] = o.Err
	}
	return list
}
