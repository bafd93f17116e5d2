/* What befalls the workers, what the client sees, and what is true in the end. */

bit away[W];
byte deliver = DELIVER; byte crash = CRASH; byte cut = CUT; byte outage = OUTAGE; byte unknown = UNKNOWN; byte fail = FAIL;
byte hang = HANG; byte drain = DRAIN; byte stop = STOP; byte regen = REGEN; byte refollow = REFOLLOW; byte lose = LOSE;
byte later_left = LATER; byte select_left = SELECT;
byte clicks; byte click_gen; byte made;   /* one regenerate, delivered twice */
#ifdef TWOSTEP
byte found[W]; byte found_ep[W]; byte found_len[W];
#endif
#if OUTAGE>0
bit steady[W];   /* has been in touch for a whole lease */
bit out[W];      /* ghost: lost its lease in the outage, and is back but for its renewal */
#endif
#ifdef M_REGENANY
#define CLICK_NEW 1
#else
#define CLICK_NEW (gen==click_gen)
#endif
#define OLD_WHOLE(x) (reply[x].st==ABANDONED && reply[x].why==BECAUSE_SUPERSEDED)
#define WHOLE_BEFORE (OLD_WHOLE(0) || OLD_WHOLE(1))
#ifdef M_HASTY
#define ALL_RENEWED 1
#else
#define ALL_RENEWED ((away[0] || lease[me[0]]==ALIVE) && (away[1] || lease[me[1]]==ALIVE))
#endif

typedef Client { byte at; byte r; byte id; byte log; byte b[L] };
#define NOT_YET 0
#define FOLLOWING 1
#define TOLD_ABANDONED 2
#define TOLD_COMPLETED 3
Client client;
#define THERE (reply[client.r].st!=NONE && reply[client.r].id==client.id)
#define SHOWS(x) ((job[x].at==STREAMING || job[x].at==PAUSED || job[x].at==UNSURE_END || job[x].at==GUARD_READ) && job[x].id==client.id && job[x].log>client.log)

inline seen_is_stored() {   /* P6: never two different bytes under one reply and offset */
  if
  :: client.at!=NOT_YET && THERE ->
     assert(!(reply[client.r].st==COMPLETE && client.log>reply[client.r].log));
     assert(!(client.log>0 && reply[client.r].log>0 && client.b[0]!=reply[client.r].b[0]));
     assert(!(client.log>1 && reply[client.r].log>1 && client.b[1]!=reply[client.r].b[1]))
  :: else
  fi
}
inline only_call() {   /* P3: one request under way for each epoch of a claim */
  for (i : 0 .. W-1) { assert(i==w || moved_back || !(job[i].at==STREAMING && job[i].id==job[w].id && job[i].ep==job[w].ep)) }
  i = 0
}
inline reborn() {   /* the process starts again, under a new id */
#ifndef M_NAME
  lives++; assert(lives<LIVES); me[w] = lives; lease[lives] = ALIVE;
#endif
#ifdef TWOSTEP
  found[w] = 0; found_ep[w] = 0; found_len[w] = 0;
#endif
#if OUTAGE>0
  steady[w] = 0; out[w] = 0;
#endif
  skip
}
inline renewed() {
#if OUTAGE>0
  out[w] = 0;
#endif
  skip
}
inline bury_rightly() {
#if OUTAGE>0
  for (i : 0 .. W-1) { assert(!(me[i]==reply[LIVING].own && !away[i] && out[i])) }   /* P11: who is well is not buried */
  i = 0
#else
  skip
#endif
}
inline excuse_absent() {
#if OUTAGE>0
  for (i : 0 .. W-1) { if :: away[i] -> out[i] = 0 :: else fi }
  i = 0
#else
  skip
#endif
}
#if DRAIN>0
inline copy(to, from) {
  to.at = from.at; to.id = from.id; to.r = from.r; to.ep = from.ep; to.own = from.own; to.call = from.call; to.gen = from.gen;
  to.log = from.log; to.b[0] = from.b[0]; to.b[1] = from.b[1]
}
inline to_spool() { copy(spool[w], job[w]); owed = job[w].r+1 }
inline from_spool() { copy(job[w], spool[w]); job[w].at = SPOOLED }
#endif

#define SOMEBODY if :: w = 0 :: w = 1 :: W>2 -> w = W-1 fi
#define PRESENT(x) (reply[LIVING].own==me[x] && !away[x])

proctype World() {
byte w;
end: do
:: atomic { crash>0 && rows>0 -> SOMEBODY; printf("@ CRASH w%d\n", w); d_step { crash--; voided = 1; forget(); away[w] = 0; reborn(); w = 0 } }
:: atomic { cut>0 && rows>0 -> SOMEBODY; printf("@ CUT OFF w%d\n", w); cut--; away[w] = 1;
#if OUTAGE>0
     steady[w] = 0;
#endif
     w = 0 }
:: atomic { away[0] -> printf("@ BACK w0\n"); away[0] = 0 }
:: atomic { away[1] -> printf("@ BACK w1\n"); away[1] = 0 }
#if W>2
:: atomic { away[2] -> printf("@ BACK w2\n"); away[2] = 0 }
#endif
:: atomic { RUNNING && lease[reply[LIVING].own]==ALIVE && !PRESENT(0) && !PRESENT(1) && (W==2 || !PRESENT(W-1)) ->
     printf("@ LEASE RUNS OUT of id %d\n", reply[LIVING].own); lease[reply[LIVING].own] = EXPIRED }
#if OUTAGE>0
:: atomic { outage>0 && rows>0 -> printf("@ THE DATABASE IS AWAY longer than a lease\n");
     d_step { outage--; for (i : 0 .. W-1) { away[i] = 1; steady[i] = 0;
         if :: lease[me[i]]==ALIVE -> lease[me[i]] = EXPIRED; out[i] = 1 :: else fi }; i = 0 } }
#endif
#if HANG>0
:: atomic { hang>0 && (job[0].at==STREAMING || job[1].at==STREAMING) -> hang--;
     if :: job[0].at==STREAMING -> w = 0 :: job[1].at==STREAMING -> w = 1 fi;
     printf("@ STUCK w%d\n", w); reply[job[w].r].late = 1;
     if :: job[w].at = HUNG :: job[w].at = HUNG_EVER; voided = 1 fi; w = 0 }
:: atomic { job[0].at==HUNG -> printf("@ GOES ON w0\n"); job[0].at = STREAMING }
:: atomic { job[1].at==HUNG -> printf("@ GOES ON w1\n"); job[1].at = STREAMING }
#endif
:: atomic { regen>0 && rows>0 && !RUNNING && clicks==0 -> printf("@ A CLICK on regenerate, twice\n");
     d_step { regen--; clicks = 2; click_gen = gen; made = 0 } }
:: atomic { later_left>0 && rows>0 && !RUNNING -> printf("@ A LATER TURN\n"); d_step { later_left--; later = 1; version() } }
#if LOSE>0
:: atomic { lose>0 && rows>0 -> printf("@ FAILOVER loses the last commit\n");
     d_step { lose--; moved_back = 1;
       for (j : 0 .. R-1) {
         reply[j].st = was[j].st; reply[j].why = was[j].why; reply[j].id = was[j].id; reply[j].ep = was[j].ep;
         reply[j].own = was[j].own; reply[j].call = was[j].call; reply[j].log = was[j].log; reply[j].gen = was[j].gen;
         reply[j].stop = was[j].stop; reply[j].late = was[j].late; reply[j].settled = was[j].settled;
         reply[j].b[0] = was[j].b[0]; reply[j].b[1] = was[j].b[1]
       }
       rows = was_rows; gen = was_gen; cancelled = was_cancelled; asked = was_cancelled;
       for (j : 0 .. C-1) { ledger[j] = was_ledger[j] }
       j = 0; fresh[0] = 0; fresh[1] = 0 } }
#endif
od }

/* The client follows from any replica and comes back at will: each byte may come from the owner's memory or from the
   database, and where it stops it goes on. */
proctype Follower() {
end: do
:: atomic { client.at==NOT_YET && rows>0 -> printf("@ follow\n"); d_step { client.r = NEWEST; client.id = reply[NEWEST].id; client.log = 0; client.at = FOLLOWING } }
:: atomic { client.at==FOLLOWING && THERE && client.log<reply[client.r].log -> printf("@ read from the database\n");
     d_step { client.b[client.log] = reply[client.r].b[client.log]; client.log++; seen_is_stored() } }
:: atomic { client.at==FOLLOWING && SHOWS(0) -> printf("@ read from w0\n"); d_step { client.b[client.log] = job[0].b[client.log]; client.log++; seen_is_stored() } }
:: atomic { client.at==FOLLOWING && SHOWS(1) -> printf("@ read from w1\n"); d_step { client.b[client.log] = job[1].b[client.log]; client.log++; seen_is_stored() } }
#if W>2
:: atomic { client.at==FOLLOWING && SHOWS(2) -> printf("@ read from w2\n"); d_step { client.b[client.log] = job[2].b[client.log]; client.log++; seen_is_stored() } }
#endif
:: atomic { client.at==FOLLOWING && THERE && reply[client.r].st==ABANDONED && client.log>=reply[client.r].log -> printf("@ told: abandoned\n"); client.at = TOLD_ABANDONED }
:: atomic { client.at==FOLLOWING && THERE && reply[client.r].st==COMPLETE && client.log==reply[client.r].log -> printf("@ told: completed\n"); client.at = TOLD_COMPLETED }
#ifdef M_EARLY
:: atomic { client.at==FOLLOWING && job[0].at==STREAMING && job[0].id==client.id && job[0].log==L && client.log==L -> printf("@ told: completed, too early\n"); client.at = TOLD_COMPLETED }
#endif
#ifndef M_GONE
:: atomic { LOSE>0 && client.at==FOLLOWING && !THERE -> printf("@ told: lost\n"); d_step { client.at = TOLD_ABANDONED } }
#endif
:: atomic { refollow>0 && client.at==TOLD_ABANDONED && rows>0 && (!THERE || reply[client.r].st!=ABANDONED || NEWEST!=client.r) -> printf("@ follow again\n");
     d_step { refollow--; client.at = FOLLOWING;
       if
       :: !THERE || reply[client.r].st==ABANDONED -> client.r = NEWEST; client.id = reply[NEWEST].id; client.log = 0; client.b[0] = 0; client.b[1] = 0
       :: else   /* the same reply came back: from the same offset on */
       fi } }
od }

/* Nothing more can happen. */
proctype Quiet() {
  timeout -> d_step {
    for (i : 0 .. R-1) { assert(reply[i].st!=IN_FLIGHT) };                                    /* P11 */
    assert(client.at!=FOLLOWING);                                                             /* P7 */
    for (i : 0 .. W-1) { assert(job[i].at==IDLE || job[i].at==HUNG_EVER) };
#if DRAIN>0
    assert(owed==0 && spool[0].at==IDLE && spool[1].at==IDLE);                                /* P10 */
#endif
#if LOSE>0
    if :: !voided -> for (i : 1 .. C-1) { assert(!(sent[i] && ledger[i]<ESTIMATED)) } :: else fi
#else
    for (i : 1 .. C-1) { assert(!(sent[i] && ledger[i]<ESTIMATED)) };                         /* P12 */
    if :: client.at==TOLD_COMPLETED -> assert(reply[client.r].st==COMPLETE || reply[client.r].why==BECAUSE_SUPERSEDED) :: else fi;   /* P7 */
    if :: client.at==TOLD_ABANDONED && !voided && THERE -> assert(client.log<=reply[client.r].log) :: else fi   /* P10 */
#endif
  }
}
