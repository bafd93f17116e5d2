package main

// again is the share of a counter of requests that are not the first of their turn. It is written as what is left of the
// first ones, so that it is 0, and not absent, where nothing is made again.
func again(labels, counter string) string {
	first := rate(counter, `layer="first"`)
	if labels == "" {
		return "1 - sum(" + first + ") / sum(" + rate(counter) + ")"
	}
	return "1 - sum by (" + labels + ") (" + first + ") / " + by(labels, counter)
}

// byLayer is the share of each layer that makes requests again.
func byLayer(counter string) string {
	return by("layer", counter, `layer!="first"`) + " / on () group_left () sum(" + rate(counter) + ")"
}

// partOf is the share that a counter, by cause, has of another.
func partOf(counter, whole string) string {
	return by("cause", counter) + " / on () group_left () sum(" + whole + ")"
}

// retryTokens shows what is paid for twice, and what is not.
func retryTokens() board {
	const requests, used = "turnd_requests_total", "turnd_requests_tokens_total"
	two := func(title, about, labels, legend string) []panel {
		return []panel{
			lines(title+", in requests", about, share, again(labels, requests), legend),
			lines(title+", in tokens", about+" Tokens are what the invoice counts.", share, again(labels, used), legend),
		}
	}
	rates := []panel{
		number("Retry rate in requests", "Share of the requests to providers that had been made before.", share, again("", requests), .05),
		number("Retry rate in tokens", "Share of the tokens that went into those requests. It is above the rate in requests where retries fall on long ones.", share, again("", used), .05),
	}
	rates = append(rates, two("Retry rate by model", "By provider and model.", "provider, model", "{{provider}} {{model}}")...)
	rates = append(rates, two("Retry rate by size", "By the size of the request.", "size", "{{size}}")...)
	rates = append(rates,
		stacked("Retry rate by layer, in requests", "By who made the work again.", share, byLayer(requests), "{{layer}}"),
		stacked("Retry rate by layer, in tokens", "By who made the work again. Tokens are what the invoice counts.", share, byLayer(used), "{{layer}}"))
	micros := func(expr string) string { return expr + " / 1e6" }
	return board{
		uid: "turnd-retry-tokens", title: "turnd: Retry tokens",
		about: "What is asked of providers again, in requests and in tokens; what was paid for and reached nobody; what repeats did not cost.", rows: []row{
			{"Retry rate: requests beside tokens", rates},
			{"Waste", []panel{
				stacked("Wasted tokens by cause", "Tokens that were paid for and reached nobody.", tokens, by("cause", "turnd_tokens_wasted_total"), "{{cause}}"),
				stacked("Wasted share of all tokens", "The same as a share of input and output of all calls.", share,
					partOf("turnd_tokens_wasted_total", rate("turnd_provider_tokens_total", `direction=~"input|output"`)), "{{cause}}"),
				stacked("Cost of waste by cause", "In the currency of the models file's prices.", money, micros(by("cause", "turnd_cost_wasted_total")), "{{cause}}"),
				stacked("Cost of first calls and of retries", "In the currency of the models file's prices.", money, micros(by("try", "turnd_provider_cost_total")), "{{try}}"),
			}},
			{"Saved by answering repeats from what is stored", []panel{
				stacked("Saved tokens by layer", "What repeated deliveries would have used as calls of their own.", tokens, by("layer", "turnd_duplicates_tokens_total"), "{{layer}}"),
				stacked("Saved cost by layer", "In the currency of the models file's prices.", money, micros(by("layer", "turnd_duplicates_cost_total")), "{{layer}}"),
				number("Saved share", "Of all tokens that clients asked for, those that were not paid for again.", share,
					"sum("+rate("turnd_duplicates_tokens_total")+") / (sum("+rate("turnd_duplicates_tokens_total")+") + sum("+rate(used)+"))", 1),
			}},
			{"Tokens", []panel{
				stacked("Tokens by direction", "Tokens of provider calls; what is read from and written to caches is part of the input.",
					tokens, by("direction", "turnd_provider_tokens_total"), "{{direction}}"),
				stacked("Tokens by source", "Reported by providers, or estimated where a call was cut off before they reported.",
					tokens, by("source", "turnd_provider_tokens_total"), "{{source}}"),
				stacked("Requests built again", "Requests of later attempts, by whether they came out the same to the byte. Changed ones miss the provider's cache and go under another key.",
					aSecond, by("result", "turnd_requests_rebuilt_total"), "{{result}}"),
			}},
		},
	}
}
