-- Every table but those of workers, callers and quotas leads with the conversation, so that a distributed Postgres can shard by
-- it and no key has to reach beyond one shard. A conversation_key holds the tenant, so another tenant's id misses by construction.

-- +goose Up

CREATE TABLE conversations (
    conversation_key uuid        NOT NULL PRIMARY KEY,
    tenant           text        NOT NULL,
    subject          text        NOT NULL DEFAULT '',
    conversation_id  uuid        NOT NULL,
    title            text        NOT NULL DEFAULT '',
    defaults         text        NOT NULL DEFAULT '',
    defaults_version integer     NOT NULL DEFAULT 1,
    labels           jsonb       NOT NULL DEFAULT '{}',
    create_hash      bytea,
    next_seq         bigint      NOT NULL DEFAULT 1,
    version          bigint      NOT NULL DEFAULT 1,
    leaf_id          uuid,
    last_turn_id     uuid,
    spent_turns      bigint      NOT NULL DEFAULT 0,
    spent_tokens     bigint      NOT NULL DEFAULT 0,
    spent_micros     bigint      NOT NULL DEFAULT 0,
    spent_us         bigint      NOT NULL DEFAULT 0,
    spent_through    uuid,
    deleted_at       timestamptz,
    erased_at        timestamptz,
    create_time      timestamptz NOT NULL,
    update_time      timestamptz NOT NULL,
    CONSTRAINT conversations_counters CHECK (next_seq >= 1 AND version >= 1 AND defaults_version >= 1),
    CONSTRAINT conversations_erased CHECK (erased_at IS NULL OR deleted_at IS NOT NULL)
);

-- An index that says IS NOT NULL of its column serves only statements that compare it. A row is found by its whole key,
-- and in tables that are small, or that no sample was taken of yet, every index that fits a part of a condition seems as
-- good. Plans are kept, so one made for an empty table must be good for a large one.
CREATE INDEX conversations_last_used ON conversations (tenant, subject, update_time DESC, conversation_key DESC)
    WHERE deleted_at IS NULL AND tenant IS NOT NULL;

-- What was deleted and still has content: erasing goes on in pieces, by whichever worker.
CREATE INDEX conversations_to_erase ON conversations (deleted_at) WHERE deleted_at IS NOT NULL AND erased_at IS NULL;

-- Every version of a conversation's defaults that a reply may have been made from. Replies name theirs.
CREATE TABLE conversation_defaults (
    conversation_key uuid        NOT NULL,
    version          integer     NOT NULL,
    defaults         text        NOT NULL,
    create_time      timestamptz NOT NULL,
    PRIMARY KEY (conversation_key, version)
);

-- User turns and replies are rows of one table, since a parent may be either. A reply hangs below its user turn.
-- A checkpoint rewrites log_len, which is in no index; the fill factor leaves room for the new version on the same page.
-- Every reply that ends leaves a dead version, with entries in most indexes. Vacuum comes for a twentieth of the rows and not for
-- a fifth, which of ten million rows would be hours of turns, cleaned up at once.
CREATE TABLE turns (
    conversation_key     uuid        NOT NULL,
    id                   uuid        NOT NULL,
    role                 text        NOT NULL,
    parent_id            uuid,
    seq                  bigint      NOT NULL,
    content              text        NOT NULL DEFAULT '',
    options              text        NOT NULL DEFAULT '',
    input_hash           bytea,
    generation           integer     NOT NULL DEFAULT 1,
    cancelled_generation integer     NOT NULL DEFAULT 0,
    slot_version         bigint      NOT NULL DEFAULT 0,
    responds_to          uuid,
    status               text,
    reason               text        NOT NULL DEFAULT '',
    attempt              integer     NOT NULL DEFAULT 0,
    epoch                bigint      NOT NULL DEFAULT 0,
    owner                uuid,
    endpoint             text        NOT NULL DEFAULT '',
    provider             text        NOT NULL DEFAULT '',
    model                text        NOT NULL DEFAULT '',
    provider_model       text        NOT NULL DEFAULT '',
    request_hash         bytea,
    builder_version      integer     NOT NULL DEFAULT 0,
    window_start         uuid,
    calls                integer     NOT NULL DEFAULT 0,
    waited_us            bigint      NOT NULL DEFAULT 0,
    log_len              bigint      NOT NULL DEFAULT 0,
    stop_reason          text        NOT NULL DEFAULT '',
    input_tokens         bigint      NOT NULL DEFAULT 0,
    cache_read_tokens    bigint      NOT NULL DEFAULT 0,
    cache_write_tokens   bigint      NOT NULL DEFAULT 0,
    output_tokens        bigint      NOT NULL DEFAULT 0,
    reasoning_tokens     bigint      NOT NULL DEFAULT 0,
    token_source         text        NOT NULL DEFAULT '',
    wasted_tokens        bigint      NOT NULL DEFAULT 0,
    cost_micros          bigint      NOT NULL DEFAULT 0,
    provider_calls       integer     NOT NULL DEFAULT 0,
    provider_response_id text        NOT NULL DEFAULT '',
    provider_code        text        NOT NULL DEFAULT '',
    retry_after_us       bigint      NOT NULL DEFAULT 0,
    cancel_requested     boolean     NOT NULL DEFAULT false,
    disconnect_grace_us  bigint      NOT NULL DEFAULT 0,
    followed_until       timestamptz,
    replaced_by          uuid,
    defaults_version     integer     NOT NULL DEFAULT 0,
    waiting              text        NOT NULL DEFAULT '',
    stopped_for          uuid,
    erased               boolean     NOT NULL DEFAULT false,
    on_ambiguous         text        NOT NULL DEFAULT '',
    on_partial           text        NOT NULL DEFAULT '',
    traceparent          text        NOT NULL DEFAULT '',
    next_lookup_at       timestamptz,
    lookups              integer     NOT NULL DEFAULT 0,
    settled_at           timestamptz,
    deadline_at          timestamptz,
    create_time          timestamptz NOT NULL,
    end_time             timestamptz,
    PRIMARY KEY (conversation_key, id),
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
    CONSTRAINT turns_reason CHECK ((status IS NOT DISTINCT FROM 'abandoned') = (reason <> '')),
    CONSTRAINT turns_reasons CHECK (reason IN ('', 'lease_expired', 'provider_error', 'provider_refused', 'ambiguous',
        'empty', 'cancelled', 'disconnected', 'deadline', 'shutdown', 'superseded', 'deleted', 'held_released')),
    CONSTRAINT turns_ended CHECK ((COALESCE(status, '') IN ('complete', 'abandoned')) = (end_time IS NOT NULL)),
    CONSTRAINT turns_lookup CHECK (next_lookup_at IS NULL OR COALESCE(status, '') = 'held'),
    CONSTRAINT turns_waits CHECK (waiting = '' OR role = 'user'),
    CONSTRAINT turns_erased CHECK (NOT erased OR (role = 'user' AND content = '' AND waiting = '')),
    CONSTRAINT turns_log_len CHECK (log_len BETWEEN 0 AND 4294967295)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- A row is found by its whole key. Where a sample says that a conversation which is not in it has one row at most, any index
-- that begins with the conversation seems as good, and reads all of it for each row. Without a sample it is taken to be long.
ALTER TABLE turns ALTER COLUMN conversation_key SET STATISTICS 0;

CREATE UNIQUE INDEX turns_seq ON turns (conversation_key, seq) WHERE seq IS NOT NULL;

CREATE UNIQUE INDEX turns_attempt ON turns (conversation_key, responds_to, attempt) WHERE responds_to IS NOT NULL;

-- The arbiter of every claim: a user turn has at most one reply that is not abandoned.
CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to)
    WHERE role = 'assistant' AND status <> 'abandoned';

CREATE UNIQUE INDEX one_running_reply_per_conversation ON turns (conversation_key)
    WHERE role = 'assistant' AND status = 'in_flight';

-- The user turns that stand in line, which are few.
CREATE INDEX turns_in_line ON turns (conversation_key, seq) WHERE role = 'user' AND waiting <> '';

-- The turns whose reply was stopped for another one.
CREATE INDEX turns_stopped_for ON turns (conversation_key, stopped_for) WHERE stopped_for IS NOT NULL;

-- What hangs below a row or below none, in order: of very many siblings the newest are found without reading the others.
CREATE INDEX turns_below ON turns (conversation_key, parent_id, seq) WHERE parent_id IS NOT NULL;

CREATE INDEX turns_at_the_top ON turns (conversation_key, seq) WHERE parent_id IS NULL;

-- These two serve sweeps. They name the role so that a guard on the status alone does not imply their predicate: a write
-- that knows its row by key must never be planned as a walk over all that is running.
CREATE INDEX turns_running_by_owner ON turns (owner) WHERE role = 'assistant' AND status = 'in_flight' AND owner IS NOT NULL;

CREATE INDEX turns_running_by_deadline ON turns (deadline_at)
    WHERE role = 'assistant' AND status = 'in_flight' AND deadline_at IS NOT NULL;

-- What is held is rare, and is looked for by when it is to be asked for, or in the order in which it came.
CREATE INDEX turns_held_by_lookup ON turns (next_lookup_at) WHERE role = 'assistant' AND status = 'held';

CREATE INDEX turns_held_by_age ON turns (create_time, id) WHERE role = 'assistant' AND status = 'held';

-- The log of a reply in flight, as it was checkpointed. A chunk is never rewritten; all go when the reply ends.
-- Hardly any row lives, so that a share of them says nothing: vacuum comes for so many dead ones.
CREATE TABLE reply_chunks (
    conversation_key uuid   NOT NULL,
    reply_id         uuid   NOT NULL,
    start_offset     bigint NOT NULL,
    end_offset       bigint NOT NULL,
    pieces           text   NOT NULL,
    PRIMARY KEY (conversation_key, reply_id, start_offset),
    CONSTRAINT reply_chunks_grow CHECK (end_offset > start_offset)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000);

-- The ledger: one row for each physical request, committed before the request is sent. No foreign key to turns, so that
-- deleting a conversation's content can keep what it cost.
CREATE TABLE provider_calls (
    conversation_key     uuid        NOT NULL,
    call_id              uuid        NOT NULL,
    tenant               text        NOT NULL,
    conversation_id      uuid        NOT NULL,
    turn_id              uuid        NOT NULL,
    generation           integer     NOT NULL,
    reply_id             uuid        NOT NULL,
    epoch                bigint      NOT NULL,
    number               integer     NOT NULL,
    first                boolean     NOT NULL,
    layer                text        NOT NULL,
    endpoint             text        NOT NULL,
    provider             text        NOT NULL,
    model                text        NOT NULL,
    provider_model       text        NOT NULL DEFAULT '',
    credential           text        NOT NULL DEFAULT '',
    class                text        NOT NULL DEFAULT '',
    phase                text        NOT NULL DEFAULT '',
    http_status          integer     NOT NULL DEFAULT 0,
    idempotency_key      text        NOT NULL,
    request_hash         bytea,
    builder_version      integer     NOT NULL DEFAULT 0,
    request_bytes        bigint      NOT NULL,
    request_body         bytea,
    session              text        NOT NULL DEFAULT '',
    submitted_at         timestamptz,
    provider_request_id  text        NOT NULL DEFAULT '',
    provider_response_id text        NOT NULL DEFAULT '',
    input_tokens         bigint      NOT NULL DEFAULT 0,
    cache_read_tokens    bigint      NOT NULL DEFAULT 0,
    cache_write_tokens   bigint      NOT NULL DEFAULT 0,
    output_tokens        bigint      NOT NULL DEFAULT 0,
    reasoning_tokens     bigint      NOT NULL DEFAULT 0,
    token_source         text        NOT NULL DEFAULT '',
    waste_cause          text        NOT NULL DEFAULT '',
    wasted_tokens        bigint      NOT NULL DEFAULT 0,
    cost_micros          bigint      NOT NULL DEFAULT 0,
    extra_requests       integer     NOT NULL DEFAULT 0,
    output_low           bigint      NOT NULL DEFAULT 0,
    output_high          bigint      NOT NULL DEFAULT 0,
    create_time          timestamptz NOT NULL,
    end_time             timestamptz,
    PRIMARY KEY (conversation_key, call_id),
    CONSTRAINT provider_calls_layer CHECK (layer IN ('first', 'client', 'redelivery', 'takeover', 'provider')
        AND first = (layer = 'first')),
    CONSTRAINT provider_calls_closed CHECK ((class <> '') = (end_time IS NOT NULL)),
    CONSTRAINT provider_calls_body CHECK (class = '' OR request_body IS NULL)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX provider_calls_of_reply ON provider_calls (conversation_key, reply_id) WHERE reply_id IS NOT NULL;

CREATE INDEX provider_calls_of_tenant ON provider_calls (tenant, create_time, call_id) WHERE tenant IS NOT NULL;

-- Who took over a reply from whom, once for each epoch that it came to after its first. The statement that raises the epoch
-- writes it, so no other one takes longer.
CREATE TABLE reply_takeovers (
    conversation_key uuid        NOT NULL,
    reply_id         uuid        NOT NULL,
    epoch            bigint      NOT NULL,
    way              text        NOT NULL,
    from_worker      uuid        NOT NULL,
    from_name        text        NOT NULL DEFAULT '',
    to_worker        uuid        NOT NULL,
    to_name          text        NOT NULL DEFAULT '',
    create_time      timestamptz NOT NULL,
    PRIMARY KEY (conversation_key, reply_id, epoch),
    CONSTRAINT reply_takeovers_raise CHECK (epoch >= 2)
);

-- Deliveries of a turn beyond its first, by the layer that repeated them. Workers count and add up now and then, so that a
-- repeat itself writes nothing. Like the ledger they outlive what was said.
CREATE TABLE turn_repeats (
    conversation_key uuid        NOT NULL,
    turn_id          uuid        NOT NULL,
    layer            text        NOT NULL,
    tenant           text        NOT NULL,
    conversation_id  uuid        NOT NULL,
    count            bigint      NOT NULL,
    first_time       timestamptz NOT NULL,
    last_time        timestamptz NOT NULL,
    PRIMARY KEY (conversation_key, turn_id, layer),
    CONSTRAINT turn_repeats_counted CHECK (count >= 1 AND last_time >= first_time)
) WITH (fillfactor = 80);

CREATE INDEX turn_repeats_of_tenant ON turn_repeats (tenant, first_time);

-- What a tenant has spent in all, up to a place in the ledger; what came after it is added when it is asked for.
CREATE TABLE tenant_spending (
    tenant       text        NOT NULL PRIMARY KEY,
    turns        bigint      NOT NULL DEFAULT 0,
    tokens       bigint      NOT NULL DEFAULT 0,
    micros       bigint      NOT NULL DEFAULT 0,
    us           bigint      NOT NULL DEFAULT 0,
    through_time timestamptz NOT NULL,
    through_id   uuid        NOT NULL
);

-- Who may call, and as whom. A secret is shown once and kept as a hash; it is random, so that a fast hash is enough.
CREATE TABLE api_keys (
    key_id      text        NOT NULL PRIMARY KEY,
    hash        bytea       NOT NULL,
    tenant      text        NOT NULL,
    subject     text        NOT NULL,
    scopes      text        NOT NULL,
    name        text        NOT NULL DEFAULT '',
    create_time timestamptz NOT NULL,
    expire_time timestamptz,
    revoke_time timestamptz,
    CONSTRAINT api_keys_named CHECK (tenant <> '' AND subject <> '' AND scopes <> '')
);

CREATE INDEX api_keys_of_tenant ON api_keys (tenant, key_id);

-- Subjects that may make nothing new until they are reinstated.
CREATE TABLE suspensions (
    tenant      text        NOT NULL,
    subject     text        NOT NULL,
    create_time timestamptz NOT NULL,
    PRIMARY KEY (tenant, subject)
);

-- What a day's quota has been charged with: one row for each subject, and one without a subject for the tenant as a whole.
-- The row of a subject's first day of all has in next_at when its next submission would be in time, as a leaky bucket counts,
-- which no midnight empties.
CREATE TABLE quotas (
    tenant  text   NOT NULL,
    subject text   NOT NULL,
    day     date   NOT NULL,
    turns   bigint NOT NULL DEFAULT 0,
    tokens  bigint NOT NULL DEFAULT 0,
    next_at timestamptz,
    PRIMARY KEY (tenant, subject, day),
    CONSTRAINT quotas_charged CHECK (turns >= 0 AND tokens >= 0)
) WITH (fillfactor = 50);

CREATE INDEX quotas_by_day ON quotas (day);

-- What a turn and generation is charged with, on which day, and in which of the two rows of that day. While it is open its
-- turn may still cost more; a settlement moves the day's quota by the difference to what the ledger says, so that it may
-- come late, and again. settled_before are the ledger's tokens that earlier days were charged with.
CREATE TABLE quota_reservations (
    conversation_key uuid        NOT NULL,
    turn_id          uuid        NOT NULL,
    generation       integer     NOT NULL,
    tenant           text        NOT NULL,
    subject          text        NOT NULL,
    day              date        NOT NULL,
    of_subject       boolean     NOT NULL,
    of_tenant        boolean     NOT NULL,
    turns            integer     NOT NULL,
    tokens           bigint      NOT NULL,
    settled_before   bigint      NOT NULL DEFAULT 0,
    open             boolean     NOT NULL DEFAULT true,
    create_time      timestamptz NOT NULL,
    PRIMARY KEY (conversation_key, turn_id, generation),
    CONSTRAINT quota_reservations_charge CHECK (turns IN (0, 1) AND tokens >= 0 AND settled_before >= 0)
) WITH (fillfactor = 80);

CREATE INDEX quota_reservations_open ON quota_reservations (tenant, subject, create_time) WHERE open;

CREATE INDEX quota_reservations_by_age ON quota_reservations (create_time) WHERE open;

CREATE INDEX quota_reservations_closed ON quota_reservations (day) WHERE NOT open;

-- One row for each life of a process. The second unique key makes burying an update of a key: a claim holds
-- FOR KEY SHARE on its owner's row, which stops a burial until the claim is committed and lets renewals through.
CREATE TABLE workers (
    worker_id   uuid        NOT NULL PRIMARY KEY,
    name        text        NOT NULL DEFAULT '',
    lease_until timestamptz NOT NULL,
    beat        bigint      NOT NULL DEFAULT 0,
    dead        boolean     NOT NULL DEFAULT false,
    draining    boolean     NOT NULL DEFAULT false,
    start_time  timestamptz NOT NULL,
    CONSTRAINT workers_dead UNIQUE (worker_id, dead)
) WITH (fillfactor = 50);

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
