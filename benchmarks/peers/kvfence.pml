/* kvfence for SPIN: one process, one d_step an action, so that states and transitions are those of the model.
 *
 * spin -DR=3 -DB=4 -DD=3 -DK=3 -DFENCE=1 -a kvfence.pml
 *
 * R requests (2 or 3), B blocks (at most 7), D steps in flight (at most 3), K blocks a request (at most 3). FENCE: see benchmarks/kvfence.py.
 *
 * A sequence of blocks is one number in octal, block b written as the digit b+1, so that zero is the empty sequence.
 * In `free` the head is the last digit, which makes taking it a shift. In `table` and `deferred` the newest block is the
 * last digit, so that moving digit by digit to `free` leaves the oldest block at its head.
 * `deferred[i]` holds the blocks whose fence is i+1. Fences never decrease along the queue, so this is the queue itself.
 * A step's mask has the bit b+1 for the block b; slots of `flight` beyond `steps` are zero.
 */
#define WAITING  0
#define RUNNING  1
#define REMOTE   2
#define FINISHED 3

byte  status[R];
short table[R];
int   free = 2054353 & ((1 << (3 * B)) - 1);  /* octal 7654321, as many digits as there are blocks */
byte  flight[D];
byte  steps;
int   deferred[D];

#define LENGTH(seq) ((seq > 0) + (seq > 7) + (seq > 63))
#define MASK(seq)   (((1 << (seq & 7)) | (1 << ((seq >> 3) & 7)) | (1 << ((seq >> 6) & 7))) & 254)
#define USED_BY(r)  ((status[r] == RUNNING) * MASK(table[r]))
#define TARGET(r)   ((status[r] == REMOTE) * MASK(table[r]))

#if R == 2
#define ALL_USED    (USED_BY(0) | USED_BY(1))
#define ALL_TARGETS (TARGET(0) | TARGET(1))
#define ANY_RUNNING (status[0] == RUNNING || status[1] == RUNNING)
#else
#define ALL_USED    (USED_BY(0) | USED_BY(1) | USED_BY(2))
#define ALL_TARGETS (TARGET(0) | TARGET(1) | TARGET(2))
#define ANY_RUNNING (status[0] == RUNNING || status[1] == RUNNING || status[2] == RUNNING)
#endif

#if D == 1
#define ALL_FLIGHT flight[0]
#elif D == 2
#define ALL_FLIGHT (flight[0] | flight[1])
#else
#define ALL_FLIGHT (flight[0] | flight[1] | flight[2])
#endif

#if FENCE == 0
#define AT_ONCE(r) true
#elif FENCE == 1
#define AT_ONCE(r) (steps == 0)
#else
#define AT_ONCE(r) (steps == 0 || (steps == D && LENGTH(table[r]) == K))
#endif

inline take(r) {
    table[r] = (table[r] << 3) | (free & 7);
    free = free >> 3
}

/* Leaves `seq` empty. */
inline give_back(seq) {
    do
    :: seq != 0 -> free = (free << 3) | (seq & 7); seq = seq >> 3
    :: else -> break
    od
}

inline release(r) {
    if
    :: AT_ONCE(r) -> give_back(table[r])
    :: else -> deferred[steps - 1] = (deferred[steps - 1] << (3 * LENGTH(table[r]))) | table[r]; table[r] = 0
    fi
}

inline drop_oldest() {
#if D > 1
    flight[0] = flight[1];
    deferred[0] = deferred[1];
#endif
#if D > 2
    flight[1] = flight[2];
    deferred[1] = deferred[2];
#endif
    flight[D - 1] = 0;
    deferred[D - 1] = 0;
    steps--
}

/* Only admit_remote and schedule can break the invariant: the others add neither a target nor a mask. */
inline check() {
    assert((ALL_TARGETS & ALL_FLIGHT) == 0)
}

#define ACTIONS(r) \
    :: d_step { status[r] == WAITING && free != 0 -> take(r); status[r] = RUNNING } \
    :: d_step { status[r] == WAITING && free != 0 -> take(r); status[r] = REMOTE; check() } \
    :: d_step { status[r] == REMOTE -> status[r] = RUNNING } \
    :: d_step { status[r] == RUNNING && free != 0 && LENGTH(table[r]) < K -> take(r) } \
    :: d_step { status[r] == RUNNING -> release(r); status[r] = FINISHED } \
    :: d_step { (status[r] == RUNNING || status[r] == REMOTE) -> release(r); status[r] = FINISHED } \
    :: d_step { (status[r] == RUNNING || status[r] == REMOTE) -> release(r); status[r] = WAITING } \
    :: d_step { status[r] == FINISHED -> status[r] = WAITING }

active proctype engine() {
    do
    ACTIONS(0)
    ACTIONS(1)
#if R > 2
    ACTIONS(2)
#endif
    :: d_step { steps < D && ANY_RUNNING -> flight[steps] = ALL_USED; steps++; check() }
    :: d_step { steps > 0 -> give_back(deferred[0]); drop_oldest() }
    od
}
