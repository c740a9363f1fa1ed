package darknet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/text"
)

// fail says what is wrong with the value of an option.
func (s *section) fail(name, want string) {
	try.Failf("option %s is %s, %s", name, text.Quote(s.options[name].value), want)
}

// find returns the value of an option, which counts as read.
func (s *section) find(name string) (string, bool) {
	o := s.options[name]
	if o == nil {
		return "", false
	}
	if o.other != "" {
		try.Failf("option %s is given twice: %s in line %d, %s in line %d", name, text.Quote(o.value), o.line, text.Quote(o.other), o.otherLine)
	}
	o.read = true
	return o.value, true
}

// text returns an option, or what it is by default.
func (s *section) text(name, otherwise string) string {
	if v, ok := s.find(name); ok {
		return v
	}
	return otherwise
}

// digits returns the text of a number: Darknet ends it where a comment begins.
func (s *section) digits(name string) (string, bool) {
	v, ok := s.find(name)
	v, _, _ = strings.Cut(v, "#")
	return v, ok
}

// integer returns a number from least to most.
func (s *section) integer(name string, otherwise, least, most int) int {
	v, ok := s.digits(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		s.fail(name, fmt.Sprintf("want a whole number from %d to %d", least, most))
	}
	return n
}

// flag returns whether a number is not 0.
func (s *section) flag(name string) bool {
	return s.integer(name, 0, math.MinInt32, math.MaxInt32) != 0
}

// float returns a finite number.
func (s *section) float(name string, otherwise float32) float32 {
	v, ok := s.digits(name)
	if !ok {
		return otherwise
	}
	return s.parse(name, v)
}

func (s *section) parse(name, v string) float32 {
	f, err := strconv.ParseFloat(v, 32)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		s.fail(name, "want numbers")
	}
	return float32(f)
}

// list returns the parts of a list. Darknet counts the commas of a comment behind it as well.
func (s *section) list(name string) []string {
	v, ok := s.find(name)
	if !ok {
		return nil
	}
	v, comment, _ := strings.Cut(v, "#")
	if strings.Contains(comment, ",") {
		s.fail(name, "with a comma in its comment, which Darknet takes for a further number")
	}
	const most = 4096
	if strings.Count(v, ",") >= most {
		try.Failf("option %s has more than %d numbers", name, most)
	}
	return strings.Split(v, ",")
}

// integers returns the numbers of a list.
func (s *section) integers(name string) []int {
	var all []int
	for _, v := range s.list(name) {
		n, err := strconv.Atoi(v)
		if err != nil || n < math.MinInt32 || n > math.MaxInt32 {
			s.fail(name, "want whole numbers")
		}
		all = append(all, n)
	}
	return all
}

// floats returns the numbers of a list.
func (s *section) floats(name string) []float32 {
	var all []float32
	for _, v := range s.list(name) {
		all = append(all, s.parse(name, v))
	}
	return all
}

// off demands that options are 0, and says of others why.
func (s *section) off(why string, names ...string) {
	for _, name := range names {
		if s.float(name, 0) != 0 {
			s.fail(name, "which is not supported: "+why)
		}
	}
}

// ignore counts options as read that change nothing when Darknet detects.
func (s *section) ignore(names ...string) {
	for _, name := range names {
		if o := s.options[name]; o != nil {
			o.read = true
		}
	}
}

// end fails where options have not been read.
func (s *section) end() {
	var unread []string
	for name, o := range s.options {
		if !o.read {
			unread = append(unread, name)
		}
	}
	if len(unread) == 0 {
		return
	}
	slices.SortFunc(unread, func(a, b string) int { return s.options[a].line - s.options[b].line })
	const most = 8
	rest := ""
	if len(unread) > most {
		unread, rest = unread[:most], ", …"
	}
	for i, name := range unread {
		unread[i] = fmt.Sprintf("%s=%s (line %d)", short(name), short(s.options[name].value), s.options[name].line)
	}
	what := "option"
	if len(unread) > 1 {
		what = "options"
	}
	try.Failf("unknown %s, which might change what it computes: %s%s", what, strings.Join(unread, ", "), rest)
}

// training are the options of any layer that concern training, and where on a GPU it runs.
var training = []string{
	"burnin_update", "clip", "dont_update", "learning_rate", "onlyforward", "stopbackward", "train_only_bn", "stream", "wait_stream",
}

// common reads the options of every layer.
func (s *section) common() {
	s.ignore(training...)
	s.off("its weights would not be read from the file", "dontload", "dontloadscales")
}

// earlier returns the numbers of the layers that an option lists: those below 0 count back
// from this one.
func (s *section) earlier(name string) []int {
	list := s.integers(name)
	if list == nil {
		try.Failf("option %s is missing", name)
	}
	for i, n := range list {
		at := n
		if n < 0 {
			at = s.number + n
		}
		if at < 0 || at >= s.number {
			try.Failf("option %s names layer %d, but the number of layers before it is %d", name, n, s.number)
		}
		list[i] = at
	}
	return list
}
