package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// endings is what a worker takes after delay and grace: replies that were cut off are stored for 5 s, and what is left is closed.
const endings = 10 * time.Second

func TestAMistakeInAManifestIsNoticed(t *testing.T) {
	d := decoder(t)
	whole := read(t, kubernetesDir+"/deployment.yaml")
	_, err := decode(d, whole)
	require.NoError(t, err)
	mistakes := map[string]struct{ old, planted, says string }{
		"a field that does not exist":        {"failureThreshold: 30", "failureTreshold: 30", `unknown field "spec.template.spec.containers[0].startupProbe.failureTreshold"`},
		"a field in the wrong case":          {"readOnlyRootFilesystem", "readOnlyRootFileSystem", "unknown field"},
		"a field of another object":          {"maxUnavailable: 0}", "maxUnavailable: 0, minAvailable: 1}", "unknown field"},
		"a key that is there twice":          {"  revisionHistoryLimit: 5", "  revisionHistoryLimit: 5\n  revisionHistoryLimit: 6", "already set"},
		"text for a number":                  {"runAsUser: 65532", "runAsUser: nonroot", "cannot unmarshal string"},
		"a number for text":                  {`value: "off"`, "value: 0", "cannot unmarshal number"},
		"an unquoted word that YAML changes": {`value: "off"`, "value: off", "cannot unmarshal bool"},
		"a quantity that is none":            {"memory: 1Gi", "memory: 1GiB", "quantities must match"},
		"a list for a map":                   {"{drop: [ALL]}", "[ALL]", "cannot unmarshal array"},
		"a kind of another group":            {"apiVersion: apps/v1", "apiVersion: v1", "no kind"},
		"a kind that does not exist":         {"kind: Deployment", "kind: Deploy", "no kind"},
		"indentation that is off":            {"    spec:\n", "   spec:\n", "did not find expected key"},
	}
	for name, c := range mistakes {
		require.Contains(t, whole, c.old, name)
		_, err := decode(d, strings.Replace(whole, c.old, c.planted, 1))
		require.ErrorContains(t, err, c.says, name)
	}
	t.Logf("noticed %d planted mistakes", len(mistakes))
}

func TestEachManifestIsAnObjectOfItsKind(t *testing.T) {
	all := objects(t)
	for _, want := range []string{
		"ServiceAccount turnd", "ConfigMap turnd-models", "Secret turnd", "Job turnd-migrate", "Deployment turnd", "Service turnd",
		"Service turnd-workers", "PodDisruptionBudget turnd", "HorizontalPodAutoscaler turnd", "ConfigMap turnd-metrics-adapter",
		"PodMonitor turnd", "NetworkPolicy turnd",
	} {
		require.Contains(t, all, want)
		delete(all, want)
	}
	require.Empty(t, all, "another object wants a look at what it must agree with")
}

func TestTheKustomizationNamesFilesThatAreThere(t *testing.T) {
	var k struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Namespace  string   `json:"namespace"`
		Resources  []string `json:"resources"`
		Images     []struct {
			Name    string `json:"name"`
			NewName string `json:"newName"`
			NewTag  string `json:"newTag"`
		} `json:"images"`
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, filepath.Join(kubernetesDir, kustomization))), &k))
	for _, file := range k.Resources {
		_, err := os.Stat(filepath.Join(kubernetesDir, file))
		require.NoError(t, err)
	}
	require.NotContains(t, k.Resources, "secret.yaml", "its secrets are examples")
	require.Equal(t, strings.Split(worker(t).Image, ":")[0], k.Images[0].Name)
}

func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	return one[*appsv1.Deployment](t, objects(t), "Deployment turnd")
}

// worker is the container that serves.
func worker(t *testing.T) corev1.Container {
	t.Helper()
	containers := deployment(t).Spec.Template.Spec.Containers
	require.Len(t, containers, 1)
	return containers[0]
}

// value is what a variable of the worker is set to.
func value(t *testing.T, name string) string {
	t.Helper()
	env := worker(t).Env
	i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return env[i].Value
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

func TestAPodIsKilledOnlyAfterDelayGraceAndEndings(t *testing.T) {
	delay, grace := duration(t, value(t, "TURND_DRAIN_DELAY")), duration(t, value(t, "TURND_GRACE"))
	require.GreaterOrEqual(t, delay, 5*time.Second, "proxies hear of it within seconds")
	until := time.Duration(*deployment(t).Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	require.Greater(t, until, delay+grace+endings)
	require.Nil(t, worker(t).Lifecycle, "a hook would delay the signal, and readiness with it")
}

func TestProbesAskThePortAndThePathsOfTheOpsListener(t *testing.T) {
	c := worker(t)
	require.Equal(t, "0.0.0.0:9464", value(t, "TURND_OPS_LISTEN"))
	require.Equal(t, "0.0.0.0:8080", value(t, "TURND_LISTEN"))
	require.Equal(t, []corev1.ContainerPort{{Name: "grpc", ContainerPort: 8080}, {Name: "ops", ContainerPort: 9464}}, c.Ports)
	for name, p := range map[string]struct {
		probe *corev1.Probe
		path  string
	}{"startup": {c.StartupProbe, "/healthz"}, "liveness": {c.LivenessProbe, "/healthz"}, "readiness": {c.ReadinessProbe, "/readyz"}} {
		require.Equal(t, p.path, p.probe.HTTPGet.Path, name)
		require.Equal(t, "ops", p.probe.HTTPGet.Port.String(), name)
		require.Greater(t, p.probe.TimeoutSeconds, int32(2), "%s: a check takes up to 2 s", name)
	}
	require.GreaterOrEqual(t, c.LivenessProbe.FailureThreshold*c.LivenessProbe.PeriodSeconds, int32(30), "a busy node is no reason to kill")
}

// harden are the demands of the restricted standard for pods.
func harden(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.Equal(t, int64(65532), *pod.SecurityContext.RunAsUser)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	require.False(t, *pod.AutomountServiceAccountToken)
	require.False(t, *pod.EnableServiceLinks, "TURND_PORT, which they would set, is refused")
	require.False(t, pod.HostNetwork || pod.HostPID || pod.HostIPC)
	for _, c := range pod.Containers {
		require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
		require.Empty(t, c.SecurityContext.Capabilities.Add)
		require.False(t, c.Resources.Requests.Memory().IsZero())
		require.False(t, c.Resources.Limits.Memory().IsZero())
	}
}

func TestPodsRunAsNobodyInParticularAndWriteToTheirVolumesAlone(t *testing.T) {
	all := objects(t)
	pod := deployment(t).Spec.Template.Spec
	harden(t, pod)
	harden(t, one[*batchv1.Job](t, all, "Job turnd-migrate").Spec.Template.Spec)
	mounts := map[string]bool{}
	for _, m := range worker(t).VolumeMounts {
		mounts[m.MountPath] = m.ReadOnly
		require.True(t, slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }), m.Name)
	}
	readOnly, mounted := mounts[value(t, "TURND_DATA_DIR")]
	require.True(t, mounted && !readOnly)
	require.True(t, strings.HasPrefix(value(t, "TURND_SPOOL_DIR"), value(t, "TURND_DATA_DIR")+"/"))
	require.Contains(t, mounts, filepath.Dir(value(t, "TURND_MODELS")))
	require.Contains(t, one[*corev1.ConfigMap](t, all, "ConfigMap turnd-models").Data, filepath.Base(value(t, "TURND_MODELS")))
	require.Equal(t, "turnd-models", pod.Volumes[0].ConfigMap.Name)
}

func TestEverySettingOfTheManifestsIsOneOfTurndAndEverySecretIsThere(t *testing.T) {
	all := objects(t)
	variables, _ := settings(t)
	known := commands(t)
	secret := one[*corev1.Secret](t, all, "Secret turnd")
	job := one[*batchv1.Job](t, all, "Job turnd-migrate").Spec.Template.Spec.Containers[0]
	for _, c := range []corev1.Container{worker(t), job} {
		require.True(t, known[strings.Join(c.Args, " ")], c.Args)
		require.Empty(t, c.Command, "the image has no other program")
		for _, e := range c.Env {
			if strings.HasPrefix(e.Name, "TURND_") {
				require.True(t, variables[e.Name], e.Name)
			}
			if e.ValueFrom == nil {
				continue
			}
			if ref := e.ValueFrom.SecretKeyRef; ref != nil {
				require.Equal(t, secret.Name, ref.Name)
				require.Contains(t, secret.StringData, ref.Key)
			}
		}
	}
	require.Equal(t, "off", value(t, "TURND_MIGRATE"), "the job migrates")
	models := one[*corev1.ConfigMap](t, all, "ConfigMap turnd-models").Data["models.yaml"]
	require.Contains(t, models, "{env: ANTHROPIC_API_KEY}")
}

func TestSelectorsSelectTheWorkersAndNothingElse(t *testing.T) {
	all := objects(t)
	d := deployment(t)
	pods := labels.Set(d.Spec.Template.Labels)
	job := labels.Set(one[*batchv1.Job](t, all, "Job turnd-migrate").Spec.Template.Labels)
	selectors := map[string]*metav1.LabelSelector{
		"Deployment": d.Spec.Selector,
		"PDB":        one[*policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget turnd").Spec.Selector,
		"spread":     d.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector,
		"PodMonitor": &one[*monitoringv1.PodMonitor](t, all, "PodMonitor turnd").Spec.Selector,
	}
	for _, name := range []string{"turnd", "turnd-workers"} {
		s := one[*corev1.Service](t, all, "Service "+name)
		selectors[name] = &metav1.LabelSelector{MatchLabels: s.Spec.Selector}
		require.Equal(t, "grpc", s.Spec.Ports[0].TargetPort.String())
		require.False(t, s.Spec.PublishNotReadyAddresses)
	}
	for name, s := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(s)
		require.NoError(t, err, name)
		require.True(t, selector.Matches(pods), name)
		require.False(t, selector.Matches(job), "%s: the job serves nobody", name)
	}
	policy := one[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy turnd")
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	require.NoError(t, err)
	require.True(t, selector.Matches(pods) && selector.Matches(job), "the job reaches the database alone, too")
}

func TestOneWorkerAtLeastIsLeftByDisruptionsUpdatesAndTheAutoscaler(t *testing.T) {
	all := objects(t)
	scaler := one[*autoscalingv2.HorizontalPodAutoscaler](t, all, "HorizontalPodAutoscaler turnd").Spec
	budget := one[*policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget turnd").Spec
	require.Nil(t, budget.MinAvailable)
	require.Greater(t, int(*scaler.MinReplicas), budget.MaxUnavailable.IntValue(), "one is left")
	require.Greater(t, budget.MaxUnavailable.IntValue(), 0, "a node can be emptied")
	update := deployment(t).Spec.Strategy.RollingUpdate
	require.Equal(t, 0, update.MaxUnavailable.IntValue())
	require.Greater(t, update.MaxSurge.IntValue(), 0)
	require.Nil(t, deployment(t).Spec.Replicas, "an apply would undo what the autoscaler does")
	require.Equal(t, autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "turnd"}, scaler.ScaleTargetRef)
}

func TestTheAutoscalersMetricIsOneThatWorkersShowAndTheAdapterGives(t *testing.T) {
	all := objects(t)
	metric := one[*autoscalingv2.HorizontalPodAutoscaler](t, all, "HorizontalPodAutoscaler turnd").Spec.Metrics[0].Pods
	require.Equal(t, "turnd_in_flight", metric.Metric.Name)
	places := duration(t, value(t, "TURND_MAX_IN_FLIGHT")+"s")
	require.Less(t, metric.Target.AverageValue.Value(), int64(places.Seconds()), "workers come before turns wait")
	var config struct {
		Rules []struct {
			SeriesQuery string `json:"seriesQuery"`
			Resources   struct {
				Overrides map[string]struct {
					Group    string `json:"group"`
					Resource string `json:"resource"`
				} `json:"overrides"`
			} `json:"resources"`
			Name struct {
				Matches string `json:"matches"`
				As      string `json:"as"`
			} `json:"name"`
			MetricsQuery string `json:"metricsQuery"`
		} `json:"rules"`
	}
	text := one[*corev1.ConfigMap](t, all, "ConfigMap turnd-metrics-adapter").Data["config.yaml"]
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &config))
	require.Equal(t, metric.Metric.Name, config.Rules[0].Name.As)
	require.True(t, strings.HasPrefix(config.Rules[0].SeriesQuery, metric.Metric.Name+"{"))
	require.Equal(t, "pod", config.Rules[0].Resources.Overrides["pod"].Resource)
	require.Contains(t, config.Rules[0].MetricsQuery, "<<.Series>>{<<.LabelMatchers>>}")
	endpoint := one[*monitoringv1.PodMonitor](t, all, "PodMonitor turnd").Spec.PodMetricsEndpoints[0]
	require.Equal(t, "ops", *endpoint.Port)
	require.Equal(t, "/metrics", endpoint.Path)
}
