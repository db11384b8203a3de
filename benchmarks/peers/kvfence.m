-- kvfence for Rumur. The four numbers, FENCE and the two index types are filled in by benchmarks/run.py:
-- ranges from 0 for the full search, scalar sets for the search up to symmetry.
-- FENCE: see benchmarks/kvfence.py.

const
  R: @R@;          -- requests
  B: @B@;          -- blocks
  D: @D@;          -- steps in flight at most
  K: @K@;          -- blocks a request holds at most
  FENCE: @FENCE@;

type
  Request: @REQUEST@;
  Block: @BLOCK@;
  Status: enum { waiting, running, remote, finished };
  Mask: array [Block] of boolean;

var
  status: array [Request] of Status;
  blocks: array [Request] of array [0 .. K - 1] of Block;       -- in order of allocation
  held: array [Request] of 0 .. K;
  free: array [0 .. B - 1] of Block;                            -- head first
  nfree: 0 .. B;
  flight: array [0 .. D - 1] of Mask;                           -- oldest first
  steps: 0 .. D;
  fence: array [0 .. B - 1] of 1 .. D;                          -- oldest first, with `late`
  late: array [0 .. B - 1] of Block;
  nlate: 0 .. B;

procedure take(r: Request);
begin
  blocks[r][held[r]] := free[0];
  held[r] := held[r] + 1;
  for i: 1 .. B - 1 do
    if i < nfree then
      free[i - 1] := free[i];
    end;
  end;
  undefine free[nfree - 1];
  nfree := nfree - 1;
end;

-- Make room for n blocks before the head of the free queue.
procedure shift_free(n: 0 .. B);
begin
  for i: 1 .. B do
    if i <= nfree then
      free[nfree - i + n] := free[nfree - i];
    end;
  end;
  nfree := nfree + n;
end;

procedure release(r: Request);
begin
  if FENCE = 0 | steps = 0 | (FENCE = 2 & steps = D & held[r] = K) then
    shift_free(held[r]);
    for i: 0 .. K - 1 do
      if i < held[r] then
        free[i] := blocks[r][i];
      end;
    end;
  else
    for i: 0 .. K - 1 do
      if i < held[r] then
        late[nlate] := blocks[r][i];
        fence[nlate] := steps;
        nlate := nlate + 1;
      end;
    end;
  end;
  undefine blocks[r];
  held[r] := 0;
end;

-- Take one off every fence; what reaches zero goes to the free queue as one sequence.
procedure advance();
var due: 0 .. B;
begin
  due := 0;
  for i: 0 .. B - 1 do
    if i < nlate then
      if fence[i] = 1 then
        due := due + 1;
      end;
    end;
  end;
  shift_free(due);
  for i: 0 .. B - 1 do
    if i < due then
      free[i] := late[i];
    elsif i < nlate then
      late[i - due] := late[i];
      fence[i - due] := fence[i] - 1;
    end;
  end;
  for i: 0 .. B - 1 do
    if i < nlate & i + due >= nlate then
      undefine late[i];
      undefine fence[i];
    end;
  end;
  nlate := nlate - due;
end;

startstate
var n: 0 .. B;
begin
  n := 0;
  for b: Block do
    free[n] := b;
    n := n + 1;
  end;
  nfree := B;
  nlate := 0;
  steps := 0;
  for r: Request do
    status[r] := waiting;
    held[r] := 0;
  end;
end;

ruleset r: Request do
  rule "admit_local"
    status[r] = waiting & nfree > 0
  ==>
  begin
    take(r);
    status[r] := running;
  end;

  rule "admit_remote"
    status[r] = waiting & nfree > 0
  ==>
  begin
    take(r);
    status[r] := remote;
  end;

  rule "nic_arrive"
    status[r] = remote
  ==>
  begin
    status[r] := running;
  end;

  rule "grow"
    status[r] = running & nfree > 0 & held[r] < K
  ==>
  begin
    take(r);
  end;

  rule "finish"
    status[r] = running
  ==>
  begin
    release(r);
    status[r] := finished;
  end;

  rule "abort"
    status[r] = running | status[r] = remote
  ==>
  begin
    release(r);
    status[r] := finished;
  end;

  rule "preempt"
    status[r] = running | status[r] = remote
  ==>
  begin
    release(r);
    status[r] := waiting;
  end;

  rule "recycle"
    status[r] = finished
  ==>
  begin
    status[r] := waiting;
  end;
end;

rule "schedule"
  steps < D & exists r: Request do status[r] = running end
==>
begin
  for b: Block do
    flight[steps][b] := false;
  end;
  for r: Request do
    if status[r] = running then
      for i: 0 .. K - 1 do
        if i < held[r] then
          flight[steps][blocks[r][i]] := true;
        end;
      end;
    end;
  end;
  steps := steps + 1;
end;

rule "process"
  steps > 0
==>
begin
  for i: 1 .. D - 1 do
    if i < steps then
      flight[i - 1] := flight[i];
    end;
  end;
  undefine flight[steps - 1];
  steps := steps - 1;
  advance();
end;

invariant "no write into a block in flight"
  forall r: Request do
    status[r] = remote ->
      forall i: 0 .. K - 1 do
        i < held[r] ->
          forall k: 0 .. D - 1 do
            k < steps -> !flight[k][blocks[r][i]]
          end
      end
  end;
