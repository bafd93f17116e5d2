package server

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// ListWorkers returns the workers of the database. They serve all tenants, so they are the same to every operator.
func (o operatorService) ListWorkers(ctx context.Context, _ *turnsv1.ListWorkersRequest) (*turnsv1.ListWorkersResponse, error) {
	workers, err := o.cfg.Service.Workers(ctx)
	if err != nil {
		return nil, err
	}
	out := &turnsv1.ListWorkersResponse{}
	for _, w := range workers {
		out.Workers = append(out.Workers, &turnsv1.Worker{
			WorkerId:        idText(w.ID.UUID),
			Name:            w.Name,
			LeaseExpireTime: timeToWire(w.LeaseUntil),
			InFlight:        int32(w.InFlight),
			Draining:        w.Draining,
			Uptime:          durationpb.New(w.Uptime),
		})
	}
	return out, nil
}
