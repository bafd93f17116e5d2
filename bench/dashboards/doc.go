// Command dashboards shows that the dashboards and alerts of deploy show faults: a real Prometheus scrapes real workers, and
// the query of each panel, as it is committed, must give another value after a fault that the panel is meant to show.
//
// It starts a Postgres, a scripted provider, workers and a Prometheus with short intervals, plays one fault after the other,
// and asks each query before and after its fault. The shipped alerts are loaded with their times divided and nothing else
// changed, and those whose faults are played must fire, and must not have fired before. Beside that it runs the rules'
// unit tests, and scrapes more at once than a worker answers while turns run.
package main
