//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// deployed is the folder of what starts the command elsewhere.
const deployed = "../../deploy/"

func readDeployed(t *testing.T, file string) string {
	data, err := os.ReadFile(deployed + file)
	require.NoError(t, err)
	return string(data)
}

// A deployedProbe and the types below have what this test needs of the objects of Kubernetes. The
// rest is checked by their schemas: scripts/check-deploy.
type deployedProbe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

type deployedContainer struct {
	Args  []string
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe   *deployedProbe `yaml:"startupProbe"`
	LivenessProbe  *deployedProbe `yaml:"livenessProbe"`
	ReadinessProbe *deployedProbe `yaml:"readinessProbe"`
	Lifecycle      struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
	VolumeMounts []struct {
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type deployedPod struct {
	Containers                    []deployedContainer
	TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
}

// deploymentOf returns the pod of a Deployment, and its annotations.
func deploymentOf(t *testing.T, file string) (deployedPod, map[string]string) {
	var d struct {
		Spec struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
				Spec     deployedPod
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(readDeployed(t, file)), &d))
	require.Len(t, d.Spec.Template.Spec.Containers, 1)
	return d.Spec.Template.Spec, d.Spec.Template.Metadata.Annotations
}

// runtimeOf returns the container of KServe's runtime, and its annotations.
func runtimeOf(t *testing.T) (deployedContainer, map[string]string) {
	var r struct {
		Spec struct {
			Annotations map[string]string
			Containers  []deployedContainer
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(readDeployed(t, "kserve/servingruntime.yaml")), &r))
	require.Len(t, r.Spec.Containers, 1)
	return r.Spec.Containers[0], r.Spec.Annotations
}

// imageCommands returns the commands that the images run, with the paths of the command.
func imageCommands(t *testing.T) (commands [][]string) {
	var entry []string
	for line := range strings.Lines(readDeployed(t, "Containerfile")) {
		word, list, _ := strings.Cut(strings.TrimSpace(line), " ")
		var words []string
		if word == "ENTRYPOINT" || word == "CMD" {
			require.NoError(t, json.Unmarshal([]byte(list), &words), line)
		}
		switch word {
		case "ENTRYPOINT":
			entry = words
		case "CMD":
			commands = append(commands, append(slices.Clone(entry), words...))
		}
	}
	return commands
}

// unitCommand returns what the unit of systemd runs when BCNN_SERVE has these words.
func unitCommand(t *testing.T, more string) []string {
	unit := readDeployed(t, "systemd/bcnn.service")
	start := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(unit)
	require.NotNil(t, start)
	require.Contains(t, unit, "\nEnvironment=BCNN_SERVE= ", "without a file of settings there are no more words")
	return strings.Fields(strings.ReplaceAll(start[1], "$BCNN_SERVE", more))
}

// portOf returns the port that a server listens on for all by a flag, as --http=:8000 has it.
func portOf(t *testing.T, args []string, flag string) int {
	port, err := strconv.Atoi(strings.TrimPrefix(serveFlags(t, args)[flag], ":"))
	require.NoError(t, err, flag)
	return port
}

// serveFlags returns flags of serve, parsed as the command does.
func serveFlags(t *testing.T, args []string) map[string]string {
	require.Equal(t, "serve", args[0])
	cmd := newServe(&environment{})
	require.NoError(t, cmd.ParseFlags(args[1:]), args)
	flags := map[string]string{}
	for _, name := range []string{"http", "grpc", "drain"} {
		flags[name] = cmd.Flag(name).Value.String()
	}
	return flags
}

// Every way to start the server that is there works: its flags are those of the command, its
// ports are those that are named, what is asked of its health is answered.
func TestDeployed(t *testing.T) {
	pod, _ := deploymentOf(t, "kubernetes/base/deployment.yaml")
	gpu, _ := deploymentOf(t, "kubernetes/gpu/deployment.yaml")
	runtime, _ := runtimeOf(t)
	images := imageCommands(t)
	require.Len(t, images, 2)
	for _, image := range images {
		require.Equal(t, "/usr/local/bin/bcnn", image[0])
	}
	unit := unitCommand(t, "")
	require.Equal(t, "/usr/local/bin/bcnn", unit[0])
	folder := t.TempDir()
	data, err := os.ReadFile(saveLightNet(t))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "model.bcnn"), data, 0o644))

	for name, c := range map[string]struct {
		args   []string
		folder string // of models, there
		model  string
	}{
		"image for the CPU":    {images[0][1:], "", "digits"},
		"image with GPUs":      {images[1][1:], "", "digits"},
		"Kubernetes":           {pod.Containers[0].Args, "/models", "model"},
		"Kubernetes with GPUs": {gpu.Containers[0].Args, "/models", "model"},
		"KServe":               {runtime.Args, "/mnt/models", "cars"},
		"systemd":              {unit[1:], "/srv/bcnn", "model"},
		"systemd with flags":   {unitCommand(t, "--http :8000 --grpc :8001")[1:], "/srv/bcnn", "model"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.folder != "" {
				require.Contains(t, strings.Join(c.args, " "), c.folder)
			}
			var args []string
			for _, a := range c.args[1:] {
				a = strings.ReplaceAll(a, "{{.Name}}", "cars")
				if c.folder != "" {
					a = strings.ReplaceAll(a, c.folder, folder)
				}
				args = append(args, a)
			}
			// The last ones of the same flag count.
			log, address, stop := serveCommand(t, append(args, "--http=127.0.0.1:0", "--grpc=127.0.0.1:0", "--device=cpu")...)
			url := "http://" + address("http")
			for _, p := range []string{"/v2/health/live", "/v2/health/ready", "/v2/models/" + c.model + "/ready", "/metrics"} {
				r, err := http.Get(url + p)
				require.NoError(t, err)
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.NoError(t, r.Body.Close())
				require.Equal(t, 200, r.StatusCode, "%s: %s", p, body)
			}
			require.NotEmpty(t, address("grpc"))
			require.Equal(t, exitOK, stop(), "%s", log)
		})
	}
}

// What Kubernetes is told of the server is what the server is told.
func TestDeployedPorts(t *testing.T) {
	pod, annotations := deploymentOf(t, "kubernetes/base/deployment.yaml")
	c := pod.Containers[0]
	ports := map[string]int{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	require.Equal(t, map[string]int{"http": portOf(t, c.Args, "http"), "grpc": portOf(t, c.Args, "grpc")}, ports)
	require.Equal(t, strconv.Itoa(ports["http"]), annotations["prometheus.io/port"])
	require.Equal(t, "/metrics", annotations["prometheus.io/path"])
	for path, probe := range map[string]*deployedProbe{
		"/v2/health/live": c.LivenessProbe, "/v2/health/ready": c.ReadinessProbe,
	} {
		require.Equal(t, path, probe.HTTPGet.Path)
		require.Equal(t, "http", probe.HTTPGet.Port)
	}
	require.Equal(t, c.ReadinessProbe.HTTPGet, c.StartupProbe.HTTPGet)

	var service struct {
		Spec struct {
			Ports []struct {
				Name       string
				TargetPort string `yaml:"targetPort"`
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(readDeployed(t, "kubernetes/base/service.yaml")), &service))
	require.Len(t, service.Spec.Ports, len(ports))
	for _, p := range service.Spec.Ports {
		require.Contains(t, ports, p.TargetPort)
	}

	// It may answer the requests in progress before it is killed.
	drain, err := time.ParseDuration(serveFlags(t, c.Args)["drain"])
	require.NoError(t, err)
	require.Greater(t, pod.TerminationGracePeriodSeconds, int(drain.Seconds())+c.Lifecycle.PreStop.Sleep.Seconds)

	// With GPUs the server is started in the same way, but for the device.
	gpu, _ := deploymentOf(t, "kubernetes/gpu/deployment.yaml")
	require.Equal(t, c.Args, gpu.Containers[0].Args[:len(c.Args)])
	runtime, kserve := runtimeOf(t)
	for _, mounts := range [][]string{mountsOf(gpu.Containers[0]), mountsOf(runtime)} {
		require.Equal(t, []string{"/var/cache/bitcnn"}, mounts)
	}
	require.Contains(t, readDeployed(t, "Containerfile"), "XDG_CACHE_HOME="+path.Dir("/var/cache/bitcnn")+"\n")

	// KServe asks at these ports, and asks for the metrics.
	require.Equal(t, 8080, portOf(t, runtime.Args, "http"))
	require.Equal(t, 9000, portOf(t, runtime.Args, "grpc"))
	require.Equal(t, "8080", kserve["prometheus.kserve.io/port"])
	for _, image := range imageCommands(t) {
		require.Equal(t, ports, map[string]int{"http": portOf(t, image[1:], "http"), "grpc": portOf(t, image[1:], "grpc")})
	}
	require.Equal(t, 2, strings.Count(readDeployed(t, "Containerfile"), "\nEXPOSE "+
		strconv.Itoa(ports["http"])+" "+strconv.Itoa(ports["grpc"])+"\n"))
}

func mountsOf(c deployedContainer) (list []string) {
	for _, m := range c.VolumeMounts {
		list = append(list, m.MountPath)
	}
	return list
}

// Every document is one object, whose fields are there once.
func TestDeployedDocuments(t *testing.T) {
	kinds := map[string]string{}
	require.NoError(t, filepath.WalkDir(deployed, func(name string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		var object struct{ Kind string }
		d := yaml.NewDecoder(bytes.NewReader(data))
		require.NoError(t, d.Decode(&object), name)
		require.ErrorIs(t, d.Decode(&object), io.EOF, name)
		kinds[strings.TrimPrefix(filepath.ToSlash(name), deployed)] = object.Kind
		return nil
	}))
	require.Equal(t, map[string]string{
		"kserve/inferenceservice.yaml":       "InferenceService",
		"kserve/servingruntime.yaml":         "ClusterServingRuntime",
		"kubernetes/base/deployment.yaml":    "Deployment",
		"kubernetes/base/disruption.yaml":    "PodDisruptionBudget",
		"kubernetes/gpu/deployment.yaml":     "Deployment",
		"kubernetes/gpu/kustomization.yaml":  "Kustomization",
		"kubernetes/base/kustomization.yaml": "Kustomization",
		"kubernetes/base/service.yaml":       "Service",
	}, kinds)
}
