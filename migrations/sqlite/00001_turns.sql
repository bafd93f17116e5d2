-- The same tables and columns as on Postgres, in this engine's types: a uuid is a BLOB of 16 bytes, a time an INTEGER of
-- microseconds since 1970 in UTC, a boolean 0 or 1, JSON is TEXT.

-- +goose Up

CREATE TABLE conversations (
    conversation_key BLOB    NOT NULL PRIMARY KEY,
    tenant           TEXT    NOT NULL,
    subject          TEXT    NOT NULL DEFAULT '',
    conversation_id  BLOB    NOT NULL,
    title            TEXT    NOT NULL DEFAULT '',
    defaults         TEXT    NOT NULL DEFAULT '',
    defaults_version INTEGER NOT NULL DEFAULT 1,
    labels           TEXT    NOT NULL DEFAULT '{}',
    create_hash      BLOB,
    next_seq         INTEGER NOT NULL DEFAULT 1,
    version          INTEGER NOT NULL DEFAULT 1,
    leaf_id          BLOB,
    last_turn_id     BLOB,
    spent_turns      INTEGER NOT NULL DEFAULT 0,
    spent_tokens     INTEGER NOT NULL DEFAULT 0,
    spent_micros     INTEGER NOT NULL DEFAULT 0,
    spent_us         INTEGER NOT NULL DEFAULT 0,
    spent_through    BLOB,
    deleted_at       INTEGER,
    erased_at        INTEGER,
    create_time      INTEGER NOT NULL,
    update_time      INTEGER NOT NULL,
    CONSTRAINT conversations_counters CHECK (next_seq >= 1 AND version >= 1 AND defaults_version >= 1),
    CONSTRAINT conversations_erased CHECK (erased_at IS NULL OR deleted_at IS NOT NULL)
) STRICT;

CREATE INDEX conversations_last_used ON conversations (tenant, subject, update_time DESC, conversation_key DESC)
    WHERE deleted_at IS NULL;

-- What was deleted and still has content: erasing goes on in pieces.
CREATE INDEX conversations_to_erase ON conversations (deleted_at) WHERE deleted_at IS NOT NULL AND erased_at IS NULL;

-- Every version of a conversation's defaults that a reply may have been made from. Replies name theirs.
CREATE TABLE conversation_defaults (
    conversation_key BLOB    NOT NULL,
    version          INTEGER NOT NULL,
    defaults         TEXT    NOT NULL,
    create_time      INTEGER NOT NULL,
    PRIMARY KEY (conversation_key, version)
) STRICT;

-- User turns and replies are rows of one table, since a parent may be either. A reply hangs below its user turn.
-- A checkpoint rewrites log_len, which is in no index.
CREATE TABLE turns (
    conversation_key     BLOB    NOT NULL,
    id                   BLOB    NOT NULL,
    role                 TEXT    NOT NULL,
    parent_id            BLOB,
    seq                  INTEGER NOT NULL,
    content              TEXT    NOT NULL DEFAULT '',
    options              TEXT    NOT NULL DEFAULT '',
    input_hash           BLOB,
    generation           INTEGER NOT NULL DEFAULT 1,
    cancelled_generation INTEGER NOT NULL DEFAULT 0,
    slot_version         INTEGER NOT NULL DEFAULT 0,
    responds_to          BLOB,
    status               TEXT,
    reason               TEXT    NOT NULL DEFAULT '',
    attempt              INTEGER NOT NULL DEFAULT 0,
    epoch                INTEGER NOT NULL DEFAULT 0,
    owner                BLOB,
    endpoint             TEXT    NOT NULL DEFAULT '',
    provider             TEXT    NOT NULL DEFAULT '',
    model                TEXT    NOT NULL DEFAULT '',
    provider_model       TEXT    NOT NULL DEFAULT '',
    request_hash         BLOB,
    builder_version      INTEGER NOT NULL DEFAULT 0,
    window_start         BLOB,
    calls                INTEGER NOT NULL DEFAULT 0,
    waited_us            INTEGER NOT NULL DEFAULT 0,
    log_len              INTEGER NOT NULL DEFAULT 0,
    stop_reason          TEXT    NOT NULL DEFAULT '',
    input_tokens         INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens    INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens   INTEGER NOT NULL DEFAULT 0,
    output_tokens        INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens     INTEGER NOT NULL DEFAULT 0,
    token_source         TEXT    NOT NULL DEFAULT '',
    wasted_tokens        INTEGER NOT NULL DEFAULT 0,
    cost_micros          INTEGER NOT NULL DEFAULT 0,
    provider_calls       INTEGER NOT NULL DEFAULT 0,
    provider_response_id TEXT    NOT NULL DEFAULT '',
    provider_code        TEXT    NOT NULL DEFAULT '',
    retry_after_us       INTEGER NOT NULL DEFAULT 0,
    cancel_requested     INTEGER NOT NULL DEFAULT 0,
    disconnect_grace_us  INTEGER NOT NULL DEFAULT 0,
    followed_until       INTEGER,
    replaced_by          BLOB,
    defaults_version     INTEGER NOT NULL DEFAULT 0,
    waiting              TEXT    NOT NULL DEFAULT '',
    stopped_for          BLOB,
    erased               INTEGER NOT NULL DEFAULT 0,
    on_ambiguous         TEXT    NOT NULL DEFAULT '',
    on_partial           TEXT    NOT NULL DEFAULT '',
    traceparent          TEXT    NOT NULL DEFAULT '',
    next_lookup_at       INTEGER,
    lookups              INTEGER NOT NULL DEFAULT 0,
    settled_at           INTEGER,
    deadline_at          INTEGER,
    create_time          INTEGER NOT NULL,
    end_time             INTEGER,
    PRIMARY KEY (conversation_key, id),
    CONSTRAINT turns_seq UNIQUE (conversation_key, seq),
    CONSTRAINT turns_attempt UNIQUE (conversation_key, responds_to, attempt),
    -- Checked at commit, since one statement inserts a reply before the user turn that it answers. A reply hangs below that
    -- turn, so one reference tells of both.
    CONSTRAINT turns_parent FOREIGN KEY (conversation_key, parent_id)
        REFERENCES turns (conversation_key, id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT turns_role CHECK (role IN ('user', 'assistant')),
    CONSTRAINT turns_user CHECK (role <> 'user' OR (responds_to IS NULL AND status IS NULL AND input_hash IS NOT NULL)),
    CONSTRAINT turns_assistant CHECK (role <> 'assistant' OR (
        responds_to IS NOT NULL AND parent_id IS NOT NULL AND parent_id = responds_to
        AND status IS NOT NULL AND attempt >= 1 AND epoch >= 1 AND owner IS NOT NULL)),
    CONSTRAINT turns_status CHECK (status IN ('in_flight', 'complete', 'held', 'abandoned')),
    CONSTRAINT turns_reason CHECK ((status IS 'abandoned') = (reason <> '')),
    CONSTRAINT turns_reasons CHECK (reason IN ('', 'lease_expired', 'provider_error', 'provider_refused', 'ambiguous',
        'empty', 'cancelled', 'disconnected', 'deadline', 'shutdown', 'superseded', 'deleted', 'held_released')),
    CONSTRAINT turns_ended CHECK ((COALESCE(status, '') IN ('complete', 'abandoned')) = (end_time IS NOT NULL)),
    CONSTRAINT turns_lookup CHECK (next_lookup_at IS NULL OR COALESCE(status, '') = 'held'),
    CONSTRAINT turns_waits CHECK (waiting = '' OR role = 'user'),
    CONSTRAINT turns_erased CHECK (NOT erased OR (role = 'user' AND content = '' AND waiting = '')),
    CONSTRAINT turns_log_len CHECK (log_len BETWEEN 0 AND 4294967295)
) STRICT;

-- The arbiter of every claim: a user turn has at most one reply that is not abandoned.
CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to)
    WHERE role = 'assistant' AND status <> 'abandoned';

CREATE UNIQUE INDEX one_running_reply_per_conversation ON turns (conversation_key)
    WHERE role = 'assistant' AND status = 'in_flight';

-- The user turns that stand in line, which are few.
CREATE INDEX turns_in_line ON turns (conversation_key, seq) WHERE role = 'user' AND waiting <> '';

-- The turns whose reply was stopped for another one.
CREATE INDEX turns_stopped_for ON turns (conversation_key, stopped_for) WHERE stopped_for IS NOT NULL;

-- What hangs below a row, in order: of very many siblings the newest are found without reading the others.
CREATE INDEX turns_below ON turns (conversation_key, parent_id, seq);

CREATE INDEX turns_running_by_owner ON turns (owner) WHERE status = 'in_flight';

CREATE INDEX turns_running_by_deadline ON turns (deadline_at) WHERE status = 'in_flight';

-- What is held is rare, and is looked for by when it is to be asked for, or in the order in which it came.
CREATE INDEX turns_held_by_lookup ON turns (next_lookup_at) WHERE status = 'held';

CREATE INDEX turns_held_by_age ON turns (create_time, id) WHERE status = 'held';

-- The log of a reply in flight, as it was checkpointed. A chunk is never rewritten; all go when the reply ends.
CREATE TABLE reply_chunks (
    conversation_key BLOB    NOT NULL,
    reply_id         BLOB    NOT NULL,
    start_offset     INTEGER NOT NULL,
    end_offset       INTEGER NOT NULL,
    pieces           TEXT    NOT NULL,
    PRIMARY KEY (conversation_key, reply_id, start_offset),
    CONSTRAINT reply_chunks_grow CHECK (end_offset > start_offset)
) STRICT;

-- The ledger: one row for each physical request, committed before the request is sent. No foreign key to turns, so that
-- deleting a conversation's content can keep what it cost.
CREATE TABLE provider_calls (
    conversation_key     BLOB    NOT NULL,
    call_id              BLOB    NOT NULL,
    tenant               TEXT    NOT NULL,
    conversation_id      BLOB    NOT NULL,
    turn_id              BLOB    NOT NULL,
    generation           INTEGER NOT NULL,
    reply_id             BLOB    NOT NULL,
    epoch                INTEGER NOT NULL,
    number               INTEGER NOT NULL,
    first                INTEGER NOT NULL,
    layer                TEXT    NOT NULL,
    endpoint             TEXT    NOT NULL,
    provider             TEXT    NOT NULL,
    model                TEXT    NOT NULL,
    provider_model       TEXT    NOT NULL DEFAULT '',
    credential           TEXT    NOT NULL DEFAULT '',
    class                TEXT    NOT NULL DEFAULT '',
    phase                TEXT    NOT NULL DEFAULT '',
    http_status          INTEGER NOT NULL DEFAULT 0,
    idempotency_key      TEXT    NOT NULL,
    request_hash         BLOB,
    builder_version      INTEGER NOT NULL DEFAULT 0,
    request_bytes        INTEGER NOT NULL,
    request_body         BLOB,
    session              TEXT    NOT NULL DEFAULT '',
    submitted_at         INTEGER,
    provider_request_id  TEXT    NOT NULL DEFAULT '',
    provider_response_id TEXT    NOT NULL DEFAULT '',
    input_tokens         INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens    INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens   INTEGER NOT NULL DEFAULT 0,
    output_tokens        INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens     INTEGER NOT NULL DEFAULT 0,
    token_source         TEXT    NOT NULL DEFAULT '',
    waste_cause          TEXT    NOT NULL DEFAULT '',
    wasted_tokens        INTEGER NOT NULL DEFAULT 0,
    cost_micros          INTEGER NOT NULL DEFAULT 0,
    extra_requests       INTEGER NOT NULL DEFAULT 0,
    output_low           INTEGER NOT NULL DEFAULT 0,
    output_high          INTEGER NOT NULL DEFAULT 0,
    create_time          INTEGER NOT NULL,
    end_time             INTEGER,
    PRIMARY KEY (conversation_key, call_id),
    CONSTRAINT provider_calls_layer CHECK (layer IN ('first', 'client', 'redelivery', 'takeover', 'provider')
        AND first = (layer = 'first')),
    CONSTRAINT provider_calls_closed CHECK ((class <> '') = (end_time IS NOT NULL)),
    CONSTRAINT provider_calls_body CHECK (class = '' OR request_body IS NULL)
) STRICT;

CREATE INDEX provider_calls_of_reply ON provider_calls (conversation_key, reply_id);

CREATE INDEX provider_calls_of_tenant ON provider_calls (tenant, create_time, call_id);

-- Who took over a reply from whom, once for each epoch that it came to after its first. The statement that raises the epoch
-- writes it, so no other one takes longer.
CREATE TABLE reply_takeovers (
    conversation_key BLOB    NOT NULL,
    reply_id         BLOB    NOT NULL,
    epoch            INTEGER NOT NULL,
    way              TEXT    NOT NULL,
    from_worker      BLOB    NOT NULL,
    from_name        TEXT    NOT NULL DEFAULT '',
    to_worker        BLOB    NOT NULL,
    to_name          TEXT    NOT NULL DEFAULT '',
    create_time      INTEGER NOT NULL,
    PRIMARY KEY (conversation_key, reply_id, epoch),
    CONSTRAINT reply_takeovers_raise CHECK (epoch >= 2)
) STRICT;

-- Deliveries of a turn beyond its first, by the layer that repeated them. Workers count and add up now and then, so that a
-- repeat itself writes nothing. Like the ledger they outlive what was said.
CREATE TABLE turn_repeats (
    conversation_key BLOB    NOT NULL,
    turn_id          BLOB    NOT NULL,
    layer            TEXT    NOT NULL,
    tenant           TEXT    NOT NULL,
    conversation_id  BLOB    NOT NULL,
    count            INTEGER NOT NULL,
    first_time       INTEGER NOT NULL,
    last_time        INTEGER NOT NULL,
    PRIMARY KEY (conversation_key, turn_id, layer),
    CONSTRAINT turn_repeats_counted CHECK (count >= 1 AND last_time >= first_time)
) STRICT;

CREATE INDEX turn_repeats_of_tenant ON turn_repeats (tenant, first_time);

-- What a tenant has spent in all, up to a place in the ledger; what came after it is added when it is asked for.
CREATE TABLE tenant_spending (
    tenant       TEXT    NOT NULL PRIMARY KEY,
    turns        INTEGER NOT NULL DEFAULT 0,
    tokens       INTEGER NOT NULL DEFAULT 0,
    micros       INTEGER NOT NULL DEFAULT 0,
    us           INTEGER NOT NULL DEFAULT 0,
    through_time INTEGER NOT NULL,
    through_id   BLOB    NOT NULL
) STRICT;

-- Who may call, and as whom. A secret is shown once and kept as a hash; it is random, so that a fast hash is enough.
CREATE TABLE api_keys (
    key_id      TEXT    NOT NULL PRIMARY KEY,
    hash        BLOB    NOT NULL,
    tenant      TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    scopes      TEXT    NOT NULL,
    name        TEXT    NOT NULL DEFAULT '',
    create_time INTEGER NOT NULL,
    expire_time INTEGER,
    revoke_time INTEGER,
    CONSTRAINT api_keys_named CHECK (tenant <> '' AND subject <> '' AND scopes <> '')
) STRICT;

CREATE INDEX api_keys_of_tenant ON api_keys (tenant, key_id);

-- Subjects that may make nothing new until they are reinstated.
CREATE TABLE suspensions (
    tenant      TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    create_time INTEGER NOT NULL,
    PRIMARY KEY (tenant, subject)
) STRICT;

-- What a day's quota has been charged with: one row for each subject, and one without a subject for the tenant as a whole.
-- The row of a subject's first day of all has in next_at when its next submission would be in time, as a leaky bucket counts,
-- which no midnight empties.
CREATE TABLE quotas (
    tenant  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    day     TEXT    NOT NULL,
    turns   INTEGER NOT NULL DEFAULT 0,
    tokens  INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    PRIMARY KEY (tenant, subject, day),
    CONSTRAINT quotas_charged CHECK (turns >= 0 AND tokens >= 0)
) STRICT;

CREATE INDEX quotas_by_day ON quotas (day);

-- What a turn and generation is charged with, on which day, and in which of the two rows of that day. While it is open its
-- turn may still cost more; a settlement moves the day's quota by the difference to what the ledger says, so that it may
-- come late, and again. settled_before are the ledger's tokens that earlier days were charged with.
CREATE TABLE quota_reservations (
    conversation_key BLOB    NOT NULL,
    turn_id          BLOB    NOT NULL,
    generation       INTEGER NOT NULL,
    tenant           TEXT    NOT NULL,
    subject          TEXT    NOT NULL,
    day              TEXT    NOT NULL,
    of_subject       INTEGER NOT NULL,
    of_tenant        INTEGER NOT NULL,
    turns            INTEGER NOT NULL,
    tokens           INTEGER NOT NULL,
    settled_before   INTEGER NOT NULL DEFAULT 0,
    open             INTEGER NOT NULL DEFAULT 1,
    create_time      INTEGER NOT NULL,
    PRIMARY KEY (conversation_key, turn_id, generation),
    CONSTRAINT quota_reservations_charge CHECK (turns IN (0, 1) AND tokens >= 0 AND settled_before >= 0)
) STRICT;

CREATE INDEX quota_reservations_open ON quota_reservations (tenant, subject, create_time) WHERE open;

CREATE INDEX quota_reservations_by_age ON quota_reservations (create_time) WHERE open;

CREATE INDEX quota_reservations_closed ON quota_reservations (day) WHERE NOT open;

-- One row for each life of a process.
CREATE TABLE workers (
    worker_id   BLOB    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL DEFAULT '',
    lease_until INTEGER NOT NULL,
    beat        INTEGER NOT NULL DEFAULT 0,
    dead        INTEGER NOT NULL DEFAULT 0,
    draining    INTEGER NOT NULL DEFAULT 0,
    start_time  INTEGER NOT NULL,
    CONSTRAINT workers_dead UNIQUE (worker_id, dead)
) STRICT;

-- +goose Down

DROP TABLE workers;
DROP TABLE quota_reservations;
DROP TABLE quotas;
DROP TABLE suspensions;
DROP TABLE api_keys;
DROP TABLE tenant_spending;
DROP TABLE turn_repeats;
DROP TABLE reply_takeovers;
DROP TABLE provider_calls;
DROP TABLE reply_chunks;
DROP TABLE turns;
DROP TABLE conversation_defaults;
DROP TABLE conversations;
