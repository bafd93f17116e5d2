package server

import (
	"context"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// ListProviderCalls returns a page of the tenant's ledger.
func (o operatorService) ListProviderCalls(ctx context.Context, req *turnsv1.ListProviderCallsRequest) (*turnsv1.ListProviderCallsResponse, error) {
	filter, err := callFilterFromWire(req.GetFilter())
	if err != nil {
		return nil, err
	}
	calls, next, err := o.cfg.Service.ListCalls(ctx, callerOf(ctx), filter, int(req.GetPageSize()), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &turnsv1.ListProviderCallsResponse{NextPageToken: next}
	for _, c := range calls {
		out.Calls = append(out.Calls, callToWire(c))
	}
	return out, nil
}
