// Package scripted is a model provider that does what a script says. It speaks the HTTP of Anthropic Messages
// (POST /v1/messages), of OpenAI's Chat Completions (POST /v1/chat/completions) and Responses (POST /v1/responses), and of
// Gemini's generateContent (POST /v1beta/models/M:streamGenerateContent?alt=sse and :generateContent) and Interactions
// (POST /v1beta/interactions), streamed or not, and it plays faults at exact points of a reply: a status, a reset, a clean end
// without the terminal event, silence, a gate that somebody opens.
// It is the other side of the wire in tests, and the model of the keyless demo. No model runs here and nothing of a
// request is echoed.
//
// It is also a book-keeper. What a client believes about a call can be compared with what really happened:
//
//   - connections are counted by the accept loop, leaving out those that only ever carried control requests;
//   - a request is a body that was read on a generating path, whatever became of it;
//   - a generation is a reply that began to be produced;
//   - input tokens are the white-space separated words of all text in the request, and 100 for each image and document;
//   - output tokens are the deltas produced, also those produced after the client had gone.
//
// # How a reply runs
//
// A reply is produced by a goroutine of its own into a log, and the HTTP exchange reads that log. So a client that leaves
// does not end the generation, unless the plan says on_client_gone: stop. The points of a reply, in order, are accept,
// request_read, before_headers, after_headers, delta:N, before_terminal and after_terminal. The generation begins between
// request_read and before_headers: the same reset costs nothing at the first and a whole reply at the second.
// delta:0 lies after the opening event and before the first delta; before_terminal lies directly before message_stop
// or [DONE].
//
// What surprises:
//
//   - status, reset, close, silence, garbage, endless, comment, repeat_terminal and keep_open concern the connection; the
//     generation goes on. Only error_event ends it. A wait holds both.
//   - arrival at a gate is announced when everything before it was written to the socket.
//   - a call ends when its connection and its generation are both over, so a finished call has final numbers.
//   - running counts generations, not connections: it is 0 before a client can have read the terminal event.
//   - endless is a line that never ends. It carries no deltas.
//   - accept steps are played when the first bytes of a connection arrive, since only they tell a control request, which
//     is spared. A rule with accept steps can match on nth alone; nth and times then count connections.
//   - in a request that is not streamed nothing is written until the body is ready, unless a step needs the headers out;
//     an error_event is then answered as a status.
//   - text blocks are cut into one delta a word. Thinking goes to Chat Completions as reasoning_content, as compatible
//     servers send it; its signature, and sealed thinking altogether, are dropped there.
//   - a chat completion is kept only if it asks for it (store) and only once it is whole: its client may have gone by then.
//   - a history that the vendor refuses is refused: a tool call without its result, a result without its call, an id of a
//     call twice, input that is no object, thinking without a signature, empty text; and so are images and documents of a
//     type that the vendor does not take, without data, with bytes of another type, or in a message of the assistant's.
//
// On Gemini's two wires:
//
//   - generateContent has no terminal event: the last chunk, with the finishReason, is it. A call comes whole in one chunk, at
//     the end of its deltas; one whose input is no JSON has {}. Usage is a running total in every chunk.
//   - a thought's signature comes with the first call behind it, or in the last chunk; the first call of a reply is signed in any
//     case, and a history whose calls lost their signatures is refused.
//   - the stop reason blocked answers with a promptFeedback and without a candidate, so its plan should have a reply of no
//     deltas; CONTINUATION ends the stream with a token to go on by, which is not taken back.
//   - a Retry-After of a status step goes into the body of generateContent's error, where that vendor has it.
//   - Interactions tells only completed, requires_action and incomplete apart. Its usage comes with each step that ends.
//
// # Asking about a reply
//
// Some wires can be asked about a reply: to retrieve it, to resume its stream, to cancel it, to list several, or to open the
// session in which a reply is to run. Nothing is generated for such a request. It is counted as asked, and neither as a
// request nor as tokens.
//
//   - a reply that runs in the background goes on without its client, whatever its plan says, and is known from its beginning
//     by its id. Any other that is stored is known once it is whole, and endpoint.lookup_delay_ms later.
//   - whatever is known is so until endpoint.kept_s after its end.
//   - a resumed stream is the log read once more: the same events under the same numbers, without those that the client has.
//     Its points, too, are counted from the beginning of the reply: one that lies before what the client has is passed at once.
//   - a rule with match.ask, such as {"match": {"ask": "resume", "nth": 1}}, gives its steps to such a request, and only one
//     without it matches what generates. Only a resumed stream has points other than request_read.
//   - a cancelled reply ends its streams without a last event, and is told by retrieving it.
//   - in a conversation one response runs at a time: another is refused with conversation_locked. What was said in it is
//     listed once a response in it is whole, and endpoint.lookup_delay_ms later.
//   - on the Responses wire an error_event is response.failed for the codes that end a response (server_error, which is the
//     usual one, rate_limit_exceeded, invalid_prompt and such), and the flat error event for any other.
//
// With endpoint.idempotency: enforce, a second request with the same Idempotency-Key, credential and body gets the stored
// generation (or joins the running one) and is counted as no generation and no tokens; another body is a conflict. The
// steps of the rule that the second request matched are its own. A generation that failed or was stopped is not replayed.
//
// Everything kept is bounded: the last 100,000 calls, 100,000 keys, 10,000 stored generations, replies that can
// be asked for and sessions each, request bodies of 32 MiB.
package scripted
