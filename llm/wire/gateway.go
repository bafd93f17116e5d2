package wire

import (
	"net/http"
	"strconv"
	"strings"
)

// gatewayHeaders are those in which gateways say how many requests they made besides the one that they answer.
var gatewayHeaders = []string{"X-Litellm-Attempted-Retries", "X-Litellm-Attempted-Fallbacks"}

// maxExtra bounds what is believed of one header.
const maxExtra = 1000

// GatewayExtra reads how many requests a gateway says that it made besides: a Vendor's Extra, for wires that gateways speak.
// What is no number is none.
func GatewayExtra(h http.Header) (extra int) {
	for _, name := range gatewayHeaders {
		if n, err := strconv.Atoi(strings.TrimSpace(h.Get(name))); err == nil {
			extra += min(max(n, 0), maxExtra)
		}
	}
	return extra
}
