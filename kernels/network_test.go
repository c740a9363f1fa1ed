package kernels

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestNetwork compares the structs of network.h with those that the host fills.
func TestNetwork(t *testing.T) {
	source, numbers := header(t, "cu/network.h")
	for name, value := range map[string]int{"NETWORK_REPLICAS": NetworkReplicas, "NETWORK_BITS_WORDS": NetworkBitsWords,
		"NETWORK_THREADS": NetworkThreads, "NETWORK_OLD_THREADS": NetworkOldThreads, "NETWORK_PATCH_WORDS": NetworkPatchWords} {
		require.Equal(t, strconv.Itoa(value), numbers[name], name)
	}
	kinds := regexp.MustCompile(`NETWORK_(?:BYTES|BITS)_\d\w*`).FindAllString(source, -1)
	require.Equal(t, []string{NetworkBytes3: "NETWORK_BYTES_3", NetworkBytes5: "NETWORK_BYTES_5", NetworkBits3x1: "NETWORK_BITS_3_1",
		NetworkBits3x2: "NETWORK_BITS_3_2", NetworkBits3x4: "NETWORK_BITS_3_4", NetworkBits5x1: "NETWORK_BITS_5_1",
		NetworkBits5x2: "NETWORK_BITS_5_2"}, kinds)

	for _, mirror := range []reflect.Type{reflect.TypeFor[NetworkConv](), reflect.TypeFor[NetworkDense](), reflect.TypeFor[Network]()} {
		requireMirror(t, source, numbers, mirror)
	}
}

// TestSteps compares the table of steps.h with the one that the host fills.
func TestSteps(t *testing.T) {
	source, numbers := header(t, "cu/steps.h")
	require.Equal(t, strconv.Itoa(StepsThreads), numbers["STEPS_THREADS"])
	require.Equal(t, strconv.Itoa(StepsGroup), numbers["STEPS_GROUP"])
	var kinds []string
	for _, name := range regexp.MustCompile(`\bSTEP_\w+`).FindAllString(source, -1) {
		kinds = append(kinds, strings.ToLower(strings.TrimPrefix(name, "STEP_")))
	}
	require.Equal(t, StepKinds, kinds)
	requireMirror(t, source, numbers, reflect.TypeFor[Step]())
	require.Zero(t, unsafe.Sizeof(Step{})%16, "it is copied by four words")
}

// header returns a header without its comments, and the numbers that it defines.
func header(t *testing.T, path string) (source string, numbers map[string]string) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	source = comment.ReplaceAllString(string(text), "")
	numbers = make(map[string]string)
	for _, m := range regexp.MustCompile(`#define (\w+) +(\d+)`).FindAllStringSubmatch(source, -1) {
		numbers[m[1]] = m[2]
	}
	return source, numbers
}

// requireMirror compares a struct of a header with the one of the same name here.
func requireMirror(t *testing.T, source string, numbers map[string]string, mirror reflect.Type) {
	field := regexp.MustCompile(`^(?:const )?(\w+) (.*)$`)
	declared := regexp.MustCompile(`^(\*?)(\w+)(?:\[(\w+)\])?$`)
	types := map[string]string{"int32_t": "int32", "Geometry": "kernels.Geometry", "NetworkConv": "kernels.NetworkConv", "NetworkDense": "kernels.NetworkDense"}
	body := regexp.MustCompile(`(?s)struct ` + mirror.Name() + ` \{(.*?)\};`).FindStringSubmatch(source)
	require.NotNil(t, body)
	var want, got []string
	for _, declaration := range strings.Split(body[1], ";") {
		if declaration = strings.TrimSpace(declaration); declaration == "" {
			continue
		}
		m := field.FindStringSubmatch(declaration)
		require.NotNil(t, m, declaration)
		for _, one := range strings.Split(m[2], ",") {
			d := declared.FindStringSubmatch(strings.TrimSpace(one))
			require.NotNil(t, d, declaration)
			kind := types[m[1]]
			if d[1] == "*" {
				kind = "uint64"
			}
			if number, ok := numbers[d[3]]; ok {
				kind = "[" + number + "]" + kind
			} else if d[3] != "" {
				kind = "[" + d[3] + "]" + kind
			}
			var name strings.Builder
			for _, part := range strings.Split(d[2], "_") {
				name.WriteString(strings.ToUpper(part[:1]) + part[1:])
			}
			want = append(want, name.String()+" "+kind)
		}
	}
	for i := range mirror.NumField() {
		got = append(got, mirror.Field(i).Name+" "+mirror.Field(i).Type.String())
	}
	require.Equal(t, want, got, mirror.Name())
}

// TestOneLaunchReadsWhatItWrote: the cache of read-only loads does not see what other
// blocks of the same launch have written.
func TestOneLaunchReadsWhatItWrote(t *testing.T) {
	for _, file := range []string{"network", "steps"} {
		for _, arch := range []int{61, 75, 80, 90} {
			text, err := ReadPTX(file, arch)
			require.NoError(t, err)
			require.Contains(t, string(text), "ld.global.")
			require.NotContains(t, string(text), "ld.global.nc", "%s for sm_%d", file, arch)
		}
	}
}

// TestParameterSizes compares the sizes of structs with those of the compiler.
func TestParameterSizes(t *testing.T) {
	for entry, size := range map[string]uintptr{"network": unsafe.Sizeof(Network{}), "xor_gemm": unsafe.Sizeof(Geometry{})} {
		file := map[string]string{"network": "network", "xor_gemm": "patches"}[entry]
		for _, arch := range []int{61, 90} {
			text, err := ReadPTX(file, arch)
			require.NoError(t, err)
			require.Contains(t, string(text), fmt.Sprintf("%s_param_0[%d]", entry, size))
		}
	}
}
