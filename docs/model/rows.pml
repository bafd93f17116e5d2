/* The database, and the transactions on it. What a verb needs is a macro CAN_.. that its caller puts before it in the same
   atomic step: guard and write are one. w is the worker at work. */

/* status */
#define NONE 0
#define IN_FLIGHT 1
#define COMPLETE 2
#define ABANDONED 3
/* reason */
#define BECAUSE_LEASE 1
#define BECAUSE_DEADLINE 2
#define BECAUSE_SHUTDOWN 3
#define BECAUSE_ERROR 4
#define BECAUSE_REFUSED 5
#define BECAUSE_CANCELLED 6
#define BECAUSE_SUPERSEDED 7
/* a ledger row */
#define OPEN 1
#define ESTIMATED 2
#define BOOKED 3
/* a lease */
#define ALIVE 1
#define EXPIRED 2
#define DEAD 3

/* where a worker is with a reply */
#define IDLE 0
#define LOOKED 1     /* read how things stand, for a delivery */
#define LOOKED_RE 2  /* the same for a regenerate, */
#define LOOKED_SE 3  /* and for a select */
#define CLAIMED 4    /* the call's row is there, the request is not sent */
#define STREAMING 5
#define PAUSED 6     /* between two calls */
#define UNSURE 7     /* the claim got no answer */
#define UNSURE_END 8 /* the completion got no answer */
#define HUNG 9       /* its goroutine stands, and will go on */
#define HUNG_EVER 10
#define SPOOLED 11   /* an ending from the spool is being written */
#define WRITTEN 12   /* and is, but still lies in the spool */
#define GUARD_READ 13

typedef Reply {
  byte st; byte why; byte id; byte ep; byte own; byte call; byte log; byte gen;
  bit stop;     /* the owner is asked to stop */
  bit late;     /* the reply's own deadline has passed */
  bit settled;  /* its last owner has said all it knows */
  byte b[L]
};
typedef Run {   /* what a worker holds in memory of a reply; an ending in the spool has the same shape */
  byte at; byte id; byte r; byte ep; byte own; byte call; byte gen; byte log; byte b[L]
};

Reply reply[R]; byte rows;                 /* replies to the turn, by attempt */
byte gen = 1; byte cancelled; bit later;   /* the user turn; later: another turn came after it */
byte lease[LIVES]; byte lives;
byte ledger[C]; byte calls;
/* The conversation's version, as each worker has read it: is that still the current one? */
bit fresh[W];

Run job[W];
byte me[W];
bit sent[C];                               /* seen by the provider */
byte asked;                                /* ghost: the newest generation whose stop was asked for */
bit voided;                                /* ghost: bytes that were shown may be void, since a worker died or was replaced */
bit moved_back;                            /* ghost: a failover has lost a commit */

#if UNKNOWN>0
byte flying[W]; byte flying_id[W]; bit flying_fresh[W];   /* a claim that got no answer and may still be carried out */
#endif
#if DRAIN>0
Run spool[W];
byte owed;                                 /* ghost: an ending is only in the spool, of reply owed-1 */
#endif
#if LOSE>0
Reply was[R]; byte was_rows; byte was_ledger[C]; byte was_gen; byte was_cancelled;
#endif

hidden byte i; hidden byte n; hidden byte j;

#define LIVE(x) (reply[x].st==IN_FLIGHT || reply[x].st==COMPLETE)
#if R==3
#define FREE (!LIVE(0) && !LIVE(1) && !LIVE(2))
#define LIVING (LIVE(0) -> 0 : (LIVE(1) -> 1 : 2))
#elif R==2
#define FREE (!LIVE(0) && !LIVE(1))
#define LIVING (LIVE(0) -> 0 : 1)
#else
#define FREE (!LIVE(0) && !LIVE(1) && !LIVE(2) && !LIVE(3))
#define LIVING (LIVE(0) -> 0 : (LIVE(1) -> 1 : (LIVE(2) -> 2 : 3)))
#endif
#define NEWEST (rows-1)
#define RUNNING (rows>0 && !FREE && reply[LIVING].st==IN_FLIGHT)
#define MINE reply[job[w].r]
#define CURABLE(q) (q==BECAUSE_LEASE || q==BECAUSE_DEADLINE || q==BECAUSE_SHUTDOWN || q==BECAUSE_ERROR)

/* The fence: this reply, this epoch, this owner. */
#ifdef M_EPOCHONLY
#define SAME (MINE.st!=NONE && MINE.id==job[w].id && MINE.ep==job[w].ep)
#else
#define SAME (MINE.st!=NONE && MINE.id==job[w].id && MINE.ep==job[w].ep && MINE.own==job[w].own)
#endif
#define HELD (SAME && MINE.st==IN_FLIGHT)
#define GONE (MINE.st==NONE || MINE.id!=job[w].id)

#ifdef M_NOINDEX
#define INDEX 1
#else
#define INDEX FREE
#endif
#ifdef M_NOVERSION
#define CURRENT 1
#else
#define CURRENT fresh[w]
#endif
#ifdef M_CANCELROW
#define UNCANCELLED 1
#else
#define UNCANCELLED (cancelled<gen)
#endif

/* What may come back: revive and salvage share it. */
#ifdef M_BACKCANCELLED
#define BACK_REASON (CURABLE(MINE.why) || MINE.why==BECAUSE_CANCELLED)
#define BACK_OPEN 1
#else
#define BACK_REASON (MINE.why==BECAUSE_LEASE || MINE.why==BECAUSE_DEADLINE || MINE.why==BECAUSE_SHUTDOWN)
#define BACK_OPEN UNCANCELLED
#endif
#ifdef M_BACKOLD
#define BACK_GENERATION 1
#else
#define BACK_GENERATION (MINE.gen==gen && BACK_OPEN)
#endif
#ifdef M_BACKLATER
#define BACK_LAST 1
#else
#define BACK_LAST (!later)
#endif
#ifdef M_SETTLETWICE
#define UNSETTLED 1
#else
#define UNSETTLED (!MINE.settled)
#endif
#define OUTSIDE (SAME && MINE.st==ABANDONED && UNSETTLED)
#define CAN_COME_BACK (OUTSIDE && BACK_REASON && BACK_GENERATION && BACK_LAST && INDEX)
#define CAN_CLAIM (CURRENT && INDEX && UNCANCELLED && lease[me[w]]!=DEAD)
#ifdef M_TAKESTOPPED
#define TAKE_OPEN 1
#else
#define TAKE_OPEN (!reply[LIVING].stop)
#endif
#if defined(ENFORCED) || defined(M_INEXACT)
#define NOTHING_OUT 1
#elif LOSE>0
#define NOTHING_OUT 0   /* a take over that a failover loses is made again, with other bytes: left out, and said */
#else
#define NOTHING_OUT (ledger[reply[LIVING].call]!=OPEN && reply[LIVING].log==0)
#endif
#define CAN_TAKE_OVER (NOTHING_OUT && TAKE_OPEN && !reply[LIVING].late && reply[LIVING].ep<MAXEP && calls<C-1)

inline begin() {   /* where a failover to a standby that lags by one commit falls back to */
#if LOSE>0
  for (j : 0 .. R-1) {
    was[j].st = reply[j].st; was[j].why = reply[j].why; was[j].id = reply[j].id; was[j].ep = reply[j].ep;
    was[j].own = reply[j].own; was[j].call = reply[j].call; was[j].log = reply[j].log; was[j].gen = reply[j].gen;
    was[j].stop = reply[j].stop; was[j].late = reply[j].late; was[j].settled = reply[j].settled;
    was[j].b[0] = reply[j].b[0]; was[j].b[1] = reply[j].b[1]
  }
  was_rows = rows; was_gen = gen; was_cancelled = cancelled;
  for (j : 0 .. C-1) { was_ledger[j] = ledger[j] }
  j = 0
#else
  skip
#endif
}

inline commit() {   /* what holds after every transaction */
  n = 0;
  for (i : 0 .. R-1) {
    if :: LIVE(i) -> n++ :: else fi;
    if :: reply[i].st==COMPLETE -> assert(reply[i].log==L && reply[i].b[0]==reply[i].b[1]) :: else fi   /* P6: whole, of one generation */
  }
  assert(n<=1);                                                                                         /* P1 */
  seen_is_stored()
  i = 0; n = 0
}

inline version() {   /* every change that a claim must not overlook */
  fresh[0] = 0; fresh[1] = 0;
#if W>2
  fresh[2] = 0;
#endif
#if UNKNOWN>0
  flying_fresh[0] = 0; flying_fresh[1] = 0;
#endif
}

/* --- the ledger --- */
inline book() {   /* by who made the call, once */
  assert(ledger[job[w].call]!=BOOKED);                          /* P12: closed once */
  ledger[job[w].call] = BOOKED
}
#define guess(c) if :: ledger[c]==OPEN -> ledger[c] = ESTIMATED :: else fi   /* by estimate, where nobody has booked it */
inline close_lost() { if :: ledger[job[w].call]==OPEN -> ledger[job[w].call] = BOOKED :: else fi }

/* --- memory --- */
inline forget() {
  job[w].at = IDLE; job[w].id = 0; job[w].r = 0; job[w].ep = 0; job[w].own = 0; job[w].call = 0; job[w].gen = 0;
  job[w].log = 0; job[w].b[0] = 0; job[w].b[1] = 0
}
inline store_log() {   /* the log only grows */
  assert(job[w].log>=MINE.log);
  MINE.log = job[w].log; MINE.b[0] = job[w].b[0]; MINE.b[1] = job[w].b[1]
}

/* --- the verbs --- */
inline insert(theid, thecall, thegen, theep, theown) {
  reply[rows].st = IN_FLIGHT; reply[rows].why = 0; reply[rows].id = theid; reply[rows].ep = theep; reply[rows].own = theown;
  reply[rows].call = thecall; reply[rows].log = 0; reply[rows].gen = thegen; reply[rows].stop = 0; reply[rows].late = 0;
  reply[rows].settled = 0; reply[rows].b[0] = 0; reply[rows].b[1] = 0; ledger[thecall] = OPEN; rows++;
  version()
}
inline start(theid, thegen) {   /* the worker's memory of a claim that it has sent; its ids are minted before that */
  job[w].id = theid; job[w].r = rows; job[w].ep = 1; job[w].own = me[w]; job[w].call = theid; job[w].gen = thegen;
  job[w].log = 0; job[w].b[0] = 0; job[w].b[1] = 0
}
inline claim(theid) {
  assert(asked<gen);                                            /* P8: nothing starts after a stop */
  assert(rows==0 || CURABLE(reply[NEWEST].why));                /* P5: no attempt after an answer that is final */
  assert(!later);                                               /* nor below a later turn */
  insert(theid, theid, gen, 1, me[w])
}
inline supersede(theid) {
  if :: !FREE -> n = LIVING; reply[n].st = ABANDONED; reply[n].why = BECAUSE_SUPERSEDED :: else fi;
  gen++; made++; assert(made<=1 || moved_back);                 /* a double click is one regenerate */
  insert(theid, theid, gen, 1, me[w])
}
inline select_reply(x) {
  n = LIVING;
  if :: !FREE -> reply[n].st = ABANDONED; reply[n].why = BECAUSE_SUPERSEDED :: else fi;
  reply[x].st = COMPLETE; reply[x].why = 0; version()
}
inline checkpoint() {
  assert(MINE.own==job[w].own && MINE.st==IN_FLIGHT);           /* P4 */
  store_log()
}
inline complete() {
  assert(MINE.own==job[w].own);                                 /* P4 */
  MINE.st = COMPLETE; store_log(); MINE.settled = 1; MINE.stop = 0; book()
}
inline abandon(q) {
  assert(MINE.own==job[w].own);                                 /* P4 */
  MINE.st = ABANDONED; MINE.why = q; store_log(); MINE.settled = 1; MINE.stop = 0;
  if :: job[w].at==PAUSED || ledger[job[w].call]!=OPEN -> skip :: else -> book() fi;
  guess(MINE.call)
}
inline end_outside(x, q) {
  reply[x].st = ABANDONED; reply[x].why = q; reply[x].stop = 0;
#ifndef M_NOGUESS
  guess(reply[x].call)
#endif
}
inline sweep(x) {
  assert(lease[reply[x].own]!=ALIVE);                           /* a lease that was renewed is not swept */
  end_outside(x, (reply[x].stop -> BECAUSE_CANCELLED : BECAUSE_LEASE))
}
inline expire(x) { end_outside(x, BECAUSE_DEADLINE) }
inline cancel(x) { end_outside(x, BECAUSE_CANCELLED) }
inline take_over(x) {
  assert(asked<reply[x].gen);                                   /* P8 */
  guess(reply[x].call); calls++; ledger[calls] = OPEN;
  reply[x].ep++; reply[x].own = me[w]; reply[x].call = calls;
  job[w].id = reply[x].id; job[w].r = x; job[w].ep = reply[x].ep; job[w].own = me[w]; job[w].call = calls;
  job[w].gen = reply[x].gen;
  job[w].log = reply[x].log; job[w].b[0] = reply[x].b[0]; job[w].b[1] = reply[x].b[1]; job[w].at = CLAIMED
}
inline permit() {
  guess(MINE.call); calls++; job[w].call = calls; job[w].at = CLAIMED;
#ifdef M_NOPERMIT
  skip
#else
  MINE.call = calls; ledger[calls] = OPEN
#endif
}
inline revive() {
  assert(asked<MINE.gen && MINE.gen==gen && !later);            /* P8, P10 */
  MINE.st = IN_FLIGHT; MINE.why = 0; MINE.ep++; MINE.own = me[w]; MINE.late = 0; store_log();
  ledger[job[w].call] = OPEN; MINE.call = job[w].call; job[w].ep = MINE.ep; job[w].own = me[w]; version()
}
inline salvage() {
  assert(asked<MINE.gen && MINE.gen==gen && !later);            /* P8, P10 */
  MINE.st = COMPLETE; MINE.why = 0; store_log(); MINE.settled = 1; book(); version()
}
inline settle() {
  store_log(); MINE.settled = 1;
  if :: job[w].at==PAUSED -> skip :: else -> book() fi
}
/* A failover has lost the row. Through the index it is claimed again under the next epoch, ... */
#define STANDS_AGAIN (job[w].gen==gen+1 && reply[LIVING].st==COMPLETE)   /* what it had superseded: lost in the same commit */
#define CAN_INSERT_AGAIN (rows<R && job[w].gen>=gen && cancelled<job[w].gen && !later && (FREE || STANDS_AGAIN) && \
  lease[me[w]]==ALIVE && job[w].ep<MAXEP)
inline insert_again() {
  assert(asked<job[w].gen);                                     /* P8 */
  if :: !FREE -> n = LIVING; reply[n].st = ABANDONED; reply[n].why = BECAUSE_SUPERSEDED :: else fi;
  gen = job[w].gen;
  job[w].r = rows; job[w].ep++; job[w].own = me[w];
  insert(job[w].id, job[w].call, gen, job[w].ep, me[w]);
  if :: job[w].at==PAUSED -> ledger[job[w].call] = BOOKED :: else fi
}
/* ... or, where that can't be, kept as what it came to; one that is whole can be selected. */
inline restore() {
  job[w].r = rows;
  insert(job[w].id, job[w].call, job[w].gen, job[w].ep, job[w].own);
  MINE.st = ABANDONED; MINE.why = (job[w].log==L -> BECAUSE_SUPERSEDED : BECAUSE_LEASE); MINE.settled = 1; store_log();
  ledger[job[w].call] = BOOKED
}
