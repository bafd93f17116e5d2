package server

import (
	"context"

	"google.golang.org/grpc/health/grpc_health_v1"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// healthServices are the names that gRPC's health knows: the server as a whole, and each service.
var healthServices = []string{
	"",
	turnsv1.TurnService_ServiceDesc.ServiceName,
	turnsv1.ConversationService_ServiceDesc.ServiceName,
	turnsv1.OperatorService_ServiceDesc.ServiceName,
}

// setServing sets the health of the server as a whole and of each of its services.
func (s *Server) setServing(status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	for _, name := range healthServices {
		s.health.SetServingStatus(name, status)
	}
}

// keepHealth has health follow readiness until ctx ends. What it sets after the beginning of a drain is without effect.
func (s *Server) keepHealth(ctx context.Context) {
	s.cfg.Readiness.watch(ctx, func(all []Outcome) {
		for _, name := range healthServices {
			status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
			if isReady(all, name) {
				status = grpc_health_v1.HealthCheckResponse_SERVING
			}
			s.health.SetServingStatus(name, status)
		}
	})
}
