package main

// turns shows what users get.
func turns() board {
	const known = `"new|queued|attached|replayed|retried"`
	return board{uid: "turnd-turns", title: "turnd: Turns", about: "What was asked, how it ended, and how long it took.", rows: []row{
		{"Deliveries", []panel{
			stacked("Deliveries by result", "Deliveries of user turns, by what each was: new, or a repeat of one that runs, waits or has ended.",
				deliveries, by("result", "turnd_submissions_total", "result=~"+known), "{{result}}"),
			stacked("Refused deliveries", "Deliveries that were answered with an error, by its reason.",
				deliveries, by("result", "turnd_submissions_total", "result!~"+known), "{{result}}"),
			stacked("Repeats by layer", "What was repeated, by who repeated: the client, a queue behind it, a worker that took over, or turnd's own calls to a provider.",
				aSecond, by("layer", "turnd_duplicates_total"), "{{layer}}"),
		}},
		{"Replies", []panel{
			stacked("Replies by status", "Replies that ended or were held.", aSecond, by("status", "turnd_replies_total"), "{{status}}"),
			stacked("Abandoned replies by reason", "Replies that ended without being complete, by reason.",
				aSecond, by("reason", "turnd_replies_total", `status="abandoned"`), "{{reason}}"),
			lines("Time of a whole reply", "From the claim to the end: 95 % of the replies took at most this long, by how they ended.",
				seconds, quantile("0.95", "status", "turnd_reply_duration_seconds"), "{{status}}"),
		}},
		{"Time to the first delta", []panel{
			percentiles("Time to the first delta", "From the arrival of a new turn to the first text of its reply.", "turnd_first_delta_seconds"),
			lines("Time to the first delta by model", "95 % of the turns waited at most this long.",
				seconds, quantile("0.95", "provider, model", "turnd_first_delta_seconds"), "{{provider}} {{model}}"),
			lines("The provider's part of it", "From a request to the first piece of its response, 95 %, by model. The rest is turnd's, waiting in line or for a place included.",
				seconds, quantile("0.95", "gen_ai_request_model", "gen_ai_client_inference_time_to_first_chunk_seconds"), "{{gen_ai_request_model}}"),
		}},
		{"What runs", []panel{
			stacked("In flight", "Replies that run, by worker.", count, "sum by (instance) ("+of("turnd_in_flight")+")", "{{instance}}"),
			stacked("Waiting for a place", "Deliveries that wait for a place past --max-in-flight, by worker.",
				count, "sum by (instance) ("+of("turnd_queued")+")", "{{instance}}"),
			lines("Turns in line", "Turns that stand in line behind a reply of their conversation.", count, "max by (job) ("+of("turnd_in_line")+")", "{{job}}"),
			stacked("Followers", "Streams that follow a reply, by worker.", count, "sum by (instance) ("+of("turnd_followers")+")", "{{instance}}"),
			percentiles("Time of a claim", "The statement that claims a reply, with what waits before it.", "turnd_claim_duration_seconds"),
		}},
		{"Providers", []panel{
			stacked("Provider calls by class", "Physical requests to providers, by how each turned out.", aSecond, by("class", "turnd_provider_calls_total"), "{{class}}"),
			lines("Time of a provider call", "From the request to the end of the response, 95 %, by model.",
				seconds, quantile("0.95", "gen_ai_request_model", "gen_ai_client_inference_duration_seconds"), "{{gen_ai_request_model}}"),
			stacked("Failed calls", "Calls to models that failed, by class.", aSecond,
				by("error_type", "gen_ai_client_inference_duration_seconds_count", `error_type!=""`), "{{error_type}}"),
		}},
		{"Remote calls", []panel{
			stacked("Calls by method", "Calls of clients that ended; streams are counted at their end.",
				deliveries, by("rpc_method", "rpc_server_call_duration_seconds_count"), "{{rpc_method}}"),
			stacked("Calls by status", "Calls that ended with an error, by its code.",
				deliveries, by("rpc_response_status_code", "rpc_server_call_duration_seconds_count", `rpc_response_status_code!="OK"`), "{{rpc_response_status_code}}"),
			lines("Time of a submission", "95 % of the calls of SubmitTurn were answered within this time.", seconds,
				quantile("0.95", "", "rpc_server_call_duration_seconds", `rpc_method=~".*SubmitTurn"`), "SubmitTurn"),
		}},
	}}
}
