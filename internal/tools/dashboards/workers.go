package main

// workers shows what an operator looks after.
func workers() board {
	highest := func(metric string) string { return "max by (job) (" + of(metric) + ")" }
	return board{uid: "turnd-workers", title: "turnd: Workers and store", about: "Promises, leases, the database, and the processes themselves.", rows: []row{
		{"Promises", []panel{
			number("Turns with two live replies", "There must never be one.", count, highest("turnd_live_replies_doubled"), 1),
			number("Guards missing", "Unique indexes that are missing in the database or not valid.", count, highest("turnd_guards_broken"), 1),
			number("Endings lost in an hour", "Endings of replies that neither the database nor a spool took.", count, "sum(increase("+of("turnd_endings_lost_total")+"[1h]))", 1),
			number("Held replies", "Replies that wait for their provider or for a decision.", count, highest("turnd_held"), 1),
		}},
		{"Leases", []panel{
			stacked("Renewals of leases", "On time, late past half of the lease, failed, or lost when the worker had been declared dead.",
				aSecond, by("result", "turnd_lease_renewals_total"), "{{result}}"),
			stacked("Sweeps", "Claims of dead workers, by what became of each.", aSecond, by("result", "turnd_sweeps_total"), "{{result}}"),
			lines("Oldest claim", "Age of the reply that has been in flight for longest.", seconds, highest("turnd_oldest_claim_seconds"), "{{job}}"),
			lines("Held replies over time", "Each waits for its provider or for a decision.", count, highest("turnd_held"), "{{job}}"),
		}},
		{"Store", []panel{
			lines("Spool", "Finished replies that the database has not taken, by worker.", count, "max by (instance) ("+of("turnd_spooled")+")", "{{instance}}"),
			percentiles("Time of a checkpoint", "Storing what all running replies of a worker have so far.", "turnd_checkpoint_duration_seconds"),
			lines("Follow lag", "How long text was under way to a follower on another worker, 95 %, by the way it came.",
				seconds, quantile("0.95", "from", "turnd_follow_lag_seconds"), "{{from}}"),
			lines("Connections in use", "Connections of the pool that run a statement, by worker; --database-max-conns is the bound.",
				count, "sum by (instance) ("+of("pgxpool_acquired_connections")+")", "{{instance}}"),
			lines("Time of a statement", "95 % of the statements took at most this long.", seconds,
				quantile("0.95", "", "db_client_operation_duration_seconds"), "95 %"),
		}},
		{"Providers", []panel{
			lines("Breakers", "0 closed, 1 half open, 2 open: the worst of all workers.", count, "max by (endpoint, model) ("+of("turnd_breaker_state")+")", "{{endpoint}} {{model}}"),
		}},
		{"Processes", []panel{
			lines("Processor time", "Seconds of processor time a second, by worker.", count, "sum by (instance) ("+rate("process_cpu_seconds_total")+")", "{{instance}}"),
			lines("Memory", "Resident memory, by worker.", memory, "sum by (instance) ("+of("process_resident_memory_bytes")+")", "{{instance}}"),
			lines("Goroutines", "By worker.", count, "sum by (instance) ("+of("go_goroutines")+")", "{{instance}}"),
			stacked("Telemetry dropped", "Spans, and collections of metrics, that no collector took in time.", aSecond, by("signal", "turnd_telemetry_dropped_total"), "{{signal}}"),
		}},
	}}
}
