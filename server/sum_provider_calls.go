package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// SumProviderCalls sums the tenant's ledger and its repeated deliveries.
func (o operatorService) SumProviderCalls(ctx context.Context, req *turnsv1.SumProviderCallsRequest) (*turnsv1.SumProviderCallsResponse, error) {
	filter, err := callFilterFromWire(req.GetFilter())
	if err != nil {
		return nil, err
	}
	sums, err := o.cfg.Service.SumCalls(ctx, callerOf(ctx), filter)
	if err != nil {
		return nil, err
	}
	repeats, err := o.cfg.Service.SumRepeats(ctx, callerOf(ctx), filter)
	if err != nil {
		return nil, err
	}
	duplicates := map[string]int64{}
	for layer, count := range repeats {
		duplicates[string(layer)] = count
	}
	layers := map[string]*turnsv1.Usage{}
	for layer, usage := range sums.Layers {
		layers[string(layer)] = usageToWire(usage)
	}
	return &turnsv1.SumProviderCallsResponse{
		FirstCalls:        sums.First,
		RetryCalls:        sums.Retry,
		FirstUsage:        usageToWire(sums.FirstUsage),
		RetryUsage:        usageToWire(sums.RetryUsage),
		WastedTokens:      sums.Wasted,
		Duplicates:        duplicates,
		RetryUsageByLayer: layers,
		WastedCostMicros:  sums.WastedCost,
	}, nil
}
