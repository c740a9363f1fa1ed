package modelfile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with the description of boxes or photos is named.
func TestWrongHeadsAreNamed(t *testing.T) {
	all := networks()
	for _, c := range []struct{ network, old, changed, want string }{
		{"boxes of priors", `\"kind\":\"ssd\"`, `\"kind\":\"rcnn\"`, `network "boxes of priors": detection: head 0: unknown kind of head "rcnn"`},
		{"boxes of priors", `\"priors\":\"detection.0.priors\",`, ``, `no layer uses the tensor "detection.0.priors"`},
		{"boxes of priors", `\"priors\":\"detection.0.priors\"`, `\"boxes\":\"detection.0.priors\"`, `a layer of kind ssd takes no tensor "boxes"`},
		{"boxes of priors", `\"priors\":\"detection.0.priors\"`, `\"priors\":\"locations.weight\"`, `tensor "locations.weight" does not exist, or another layer uses it`},
		{"boxes of priors", `\"softmax\":true`, `\"softmax\":1`, "cannot unmarshal number"},
		{"boxes of priors", `\"background\":0`, `\"background\":-1,\"more\":1`, `unknown field "more"`},
		{"boxes of priors", `\"fit\":\"letterbox\"`, `\"fit\":\"twist\"`, `an unknown way to fit photos, "twist"`},
		{"boxes of anchors", `[3.5,4]`, `[3.5]`, "detection: head 0: an anchor of 1 numbers"},
		{"boxes of anchors", `\"object\":\"logistic\"`, `\"object\":\"tanh\"`, `the function "tanh" on the objectness is not known`},
		{"boxes of distributions", `\"bins\":2`, `\"bins\":3`, "head 0 (dfl): output 0 has 12 channels, but 4 distances of 3 values and 4 classes have 16"},
		{"boxes of distributions", `\"class\":\"logistic\"`, `\"class\":\"softmax\"`, `the function "softmax" on the classes is not known`},
	} {
		b := encode(t, all[c.network])
		changed := bytes.Replace(b, []byte(c.old), []byte(c.changed), 1)
		require.NotEqual(t, b, changed, c.old)
		n := binary.LittleEndian.Uint64(b)
		header := bytes.TrimRight(changed[8:8+int(n)+len(changed)-len(b)], " ")
		for (8+len(header))%alignment != 0 {
			header = append(header, ' ')
		}
		file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
		file = append(file, b[8+n:]...)
		seal(file)
		_, err := Read(t.Context(), file, Options{})
		require.ErrorContains(t, err, c.want)
	}
}
