package manifests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	root          = "../../.."
	kubernetesDir = root + "/deploy/kubernetes"
	// kustomization is read by another program, and is no object of the API.
	kustomization = "kustomization.yaml"
)

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

// decoder decodes as the API server does: strictly, with names of fields as they are spelled, and into the types of their kinds.
func decoder(t *testing.T) *json.Serializer {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme, monitoringv1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
}

// decode gives the objects of a file.
func decode(d *json.Serializer, text string) (objects []runtime.Object, err error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, kind, err := d.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", kind, err)
		}
		objects = append(objects, object)
	}
}

// objects are all objects of the manifests by their kind and name.
func objects(t *testing.T) map[string]runtime.Object {
	t.Helper()
	files, err := filepath.Glob(kubernetesDir + "/*.yaml")
	require.NoError(t, err)
	all := map[string]runtime.Object{}
	d := decoder(t)
	for _, file := range files {
		if filepath.Base(file) == kustomization {
			continue
		}
		found, err := decode(d, read(t, file))
		require.NoError(t, err, file)
		require.NotEmpty(t, found, file)
		for _, object := range found {
			key := object.GetObjectKind().GroupVersionKind().Kind + " " + nameOf(t, object)
			require.NotContains(t, all, key)
			all[key] = object
		}
	}
	return all
}

func nameOf(t *testing.T, object runtime.Object) string {
	t.Helper()
	named, err := meta.Accessor(object)
	require.NoError(t, err)
	return named.GetName()
}

// one is the object of a kind and name.
func one[T runtime.Object](t *testing.T, all map[string]runtime.Object, key string) T {
	t.Helper()
	object, ok := all[key].(T)
	require.True(t, ok, "%s is %T", key, all[key])
	return object
}

// settings are the variables and flags of turnd, by the reference that is made from them.
func settings(t *testing.T) (variables, flags map[string]bool) {
	t.Helper()
	reference := read(t, root+"/docs/configuration.md")
	variables, flags = map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile("`(TURND_[A-Z_]+)`").FindAllStringSubmatch(reference, -1) {
		variables[m[1]] = true
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)`").FindAllStringSubmatch(reference, -1) {
		flags[m[1]] = true
	}
	require.Greater(t, len(variables), 50)
	require.Greater(t, len(flags), 50)
	return variables, flags
}

// variableNames are what a text names that looks like a setting.
func variableNames(text string) []string {
	return regexp.MustCompile(`\bTURND_[A-Z_]+\b`).FindAllString(text, -1)
}

// commands are the words that turnd is called with, such as "migrate up".
func commands(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## turnd (.+)$`).FindAllStringSubmatch(read(t, root+"/docs/configuration.md"), -1) {
		all[strings.TrimSpace(m[1])] = true
	}
	require.True(t, all["serve"])
	return all
}
