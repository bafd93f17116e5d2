export * from "../../../client/src/gen/turns/v1/content_pb.js";
export * from "../../../client/src/gen/turns/v1/conversation_service_pb.js";
export * from "../../../client/src/gen/turns/v1/error_pb.js";
export * from "../../../client/src/gen/turns/v1/event_pb.js";
export * from "../../../client/src/gen/turns/v1/operator_service_pb.js";
export * from "../../../client/src/gen/turns/v1/turn_pb.js";
export * from "../../../client/src/gen/turns/v1/turn_service_pb.js";
