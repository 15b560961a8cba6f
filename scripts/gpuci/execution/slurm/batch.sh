#!/bin/sh
# What a Slurm job does on its node, where nothing of ours is installed: POSIX sh, the usual tools, tar.
#
#   job.sh             claim the job, make its scratch, start the keeper, wait for it, clean up
#   job.sh enter ARGS  become the tests' python with these arguments, in the container; the keeper calls it
#
# The text above this one sets GPUCI_JOB_DIR, GPUCI_NAME, GPUCI_TREE_SHA256, GPUCI_SCRATCH_BASE (may be empty),
# GPUCI_LEASE_SECONDS, GPUCI_RUNTIME and GPUCI_NODE_PYTHON, and defines container_check, container_pull,
# container_run and container_remove. Descriptor 9 is the keeper's lifeline, 8 the lock on the scratch.

if [ "${1:-}" = enter ]; then
    shift
    container_run "$@"
    exit
fi

umask 022
node=${SLURMD_NODENAME:-$(uname -n)}
job=${SLURM_JOB_ID:-0}
out=$GPUCI_JOB_DIR/out
claim=$GPUCI_JOB_DIR/claim
limit='slurm.time-limit, else from the plan'
token='' scratch='' keeper='' step='' asked='' caught='' killer='' watcher=''
read -r token <"$GPUCI_JOB_DIR/token"

say() {
    printf 'gpuci: %s\n' "$*"
}

frame() {
    printf 'gpuci-frame %s %s\n' "$token" "$1"
}

json_text() {
    printf '%s' "$1" | LC_ALL=C tr -cd '\040-\176' | sed 's/[\\"]/\\&/g'
}

# The keeper's verdict, where there is no keeper: VERDICT CODE REASON [node: the node is to blame].
tell() {
    say "$3"
    lines=0 sum=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 fault=null
    if [ -s "$out/journal.jsonl" ]; then
        lines=$(wc -l <"$out/journal.jsonl")
        sum=$(sha256sum <"$out/journal.jsonl")
    fi
    reason=$(json_text "$3") name=$(json_text "$node")
    [ "${4:-}" != node ] || fault="{\"node\":\"$name\",\"reason\":\"$reason\"}"
    verdict=$(printf '"schema":"gpuci/verdict/1","verdict":"%s","exit_code":%d,"reason":"%s","fault":%s,' \
        "$1" "$2" "$reason" "$fault")
    verdict=$verdict$(printf '"node":"%s","journal":{"lines":%d,"sha256":"%s"}}' "$name" "$lines" "${sum%% *}")
    # Written where tests can't have put a link: they have $out, and nothing else here.
    {
        mkdir -p -- "$out"
        printf '{%s\n' "$verdict" >"$claim/verdict" && mv -fT -- "$claim/verdict" "$out/verdict.json"
    } 2>/dev/null
    frame "{\"kind\":\"verdict\",$verdict"
}

# The end, with this exit code. What cleans up must not be hit by a signal for all of the job's processes.
leave() {
    trap '' TERM INT HUP USR1
    for process in $killer $watcher; do
        kill "$process" 2>/dev/null
    done
    exec 9>&-
    rm -f -- "$GPUCI_JOB_DIR/pull-auth"
    if [ -n "$scratch" ]; then
        container_remove
        rm -rf -- "$scratch" 2>/dev/null || {
            chmod -R u+rwX -- "$scratch" 2>/dev/null
            rm -rf -- "$scratch" 2>/dev/null || say "$scratch on $node can't be removed whole"
        }
    fi
    frame "{\"kind\":\"over\",\"code\":$1}"
    exit "$1"
}

# VERDICT REASON [node]
give_up() {
    case $1 in
    config_error) code=2 ;;
    timeout) code=3 ;;
    preempted) code=5 ;;
    cancelled) code=7 ;;
    *) code=4 ;;
    esac
    tell "$1" "$code" "$2" "${3:-}"
    leave "$code"
}

# A process and what it started: what goes on would write to a scratch that is being removed.
# shellcheck disable=SC2013,SC2329 # ids are words; traps call it
end_all() {
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
        end_all "$child"
    done
    kill -s TERM "$1" 2>/dev/null
}

# shellcheck disable=SC2329 # traps call it
# Slurm's TERM: end now, it kills after KillWait. USR1 (sbatch --signal): the time limit is near.
on_signal() {
    caught=1
    [ -n "$asked" ] || asked=$1
    if [ -n "$keeper" ]; then
        kill -s "$2" "$keeper" 2>/dev/null
        # Inside, it is told by its lifeline too: podman's client dies of TERM, and keeps USR1 to itself.
        if [ -n "$watcher" ] && [ "$1" = timeout ]; then
            echo over >&9
        elif [ -n "$watcher" ]; then
            exec 9>&-
        fi
        [ "$1" = timeout ] || [ -n "$killer" ] || {
            (sleep 4 && kill -s KILL "$keeper") 8>&- 9>&- >/dev/null 2>&1 &
            killer=$!
        }
    elif [ -n "$step" ]; then
        end_all "$step"
    fi
}

# Wait for a process although signals come meanwhile; its exit code is in $code.
await() {
    while :; do
        caught=''
        wait "$1"
        code=$?
        [ -n "$caught" ] || return 0
    done
}

end_if_asked() {
    case $asked in
    cancelled) give_up cancelled 'ended by a signal before the tests began' ;;
    timeout) give_up timeout "the job's time limit came before the tests began ($limit)" ;;
    esac
}

# Run a step that takes long so that signals are heard at once. Its words are in $problem; fails as it does.
patiently() {
    "$@" >"$scratch/words" 2>&1 9>&- </dev/null &
    step=$!
    await "$step"
    step=''
    end_if_asked
    cat -- "$scratch/words"
    problem=$(sed '/^[[:space:]]*$/d' "$scratch/words" | tail -n 1)
    return "$code"
}

# One job of this name runs, once.
claim_job() {
    if mkdir -- "$claim" 2>/dev/null; then
        printf '%s\n' "$job" >"$claim/job"
        return
    fi
    [ -d "$claim" ] || give_up infra "the job's directory can't be written (slurm.shared-dir)" node
    holder=''
    for _ in 1 2 3; do
        read -r holder 2>/dev/null <"$claim/job" && break
        sleep 1
    done
    if [ "$holder" = "$job" ] && [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
        # Slurm ended it before it started it again; a verdict other than "ended by a signal" stands.
        [ -f "$out/verdict.json" ] && grep -q '"verdict":"cancelled"' "$out/verdict.json" || [ ! -f "$out/verdict.json" ] || leave 5
        give_up preempted "job $job was requeued: it began before, and nothing runs twice"
    fi
    say "job $job leaves at once: job ${holder:-(unknown)} has $GPUCI_NAME"
    exit 4
}

# Compared with a file touched now on the same server: clocks don't matter. What can't be read is not dead.
leave_if_nobody_follows() {
    : 2>/dev/null >"$claim/now" || return 0
    now=$(stat -c %Y -- "$claim/now" 2>/dev/null) || return 0
    last=$(stat -c %Y -- "$GPUCI_JOB_DIR/lease" 2>/dev/null) || return 0
    [ $((now - last)) -le "$GPUCI_LEASE_SECONDS" ] ||
        give_up cancelled 'whoever followed this job was gone when it began: nothing was run'
}

# The same while it runs, for a keeper inside the container, where the lease is out of sight.
watch_lease() {
    every=$((GPUCI_LEASE_SECONDS / 20))
    [ "$every" -ge 1 ] || every=1
    [ "$every" -le 10 ] || every=10
    last='' still=0
    while sleep "$every" >/dev/null 2>&1; do
        # Without the script itself there is nobody to tell; its number may be another's.
        read -r _ _ _ parent _ </proc/self/stat
        [ "$parent" = $$ ] || return
        now=$(cat -- "$GPUCI_JOB_DIR/lease" 2>/dev/null)
        [ -n "$now" ] || continue
        [ "$now" = "$last" ] && still=$((still + every)) || still=0
        last=$now
        [ "$still" -ge "$GPUCI_LEASE_SECONDS" ] || continue
        say 'whoever followed this job is gone: its lease stands still'
        kill -s TERM $$
        return
    done
}

# The program's own words have the names of node and job in them, which differ from shard to shard.
no_scratch() {
    say "$problem"
    give_up infra "no scratch in $base (slurm.scratch-dir): ${problem##*: }" node
}

make_scratch() {
    base=${GPUCI_SCRATCH_BASE:-${TMPDIR:-/tmp}}
    mkdir -p -- "$base" 2>/dev/null
    problem=$(mktemp -d -- "$base/gpuci-$node-$job.XXXXXX" 2>&1) || no_scratch
    scratch=$problem
    export GPUCI_SCRATCH="$scratch" GPUCI_JOB_DIR GPUCI_RUNTIME
    # The container's user may be another; the folder above is ours alone.
    problem=$(mkdir -- "$scratch/tree" "$scratch/tmp" 2>&1 && chmod 1777 "$scratch/tmp" 2>&1 &&
        mkfifo -- "$scratch/tmp/lifeline" 2>&1) || no_scratch
    exec 9<>"$scratch/tmp/lifeline"
    command -v flock >/dev/null || return 0
    # Under its name only when it is held: a job that begins beside us removes what has a free one.
    exec 8>"$scratch/new-lock"
    flock -n 8
    mv -- "$scratch/new-lock" "$scratch/lock"
    clean_up_after_others
}

# What jobs on this node left that were killed before they could clean up: nobody holds their lock.
clean_up_after_others() {
    find "$base" -maxdepth 1 -type d -user "$(id -u)" -name "gpuci-$node-*.??????" ! -path "$scratch" |
        while read -r old; do
            [ -f "$old/lock" ] && clean_up_after "$old" 7<"$old/lock" 8>&- 9>&- </dev/null
        done >/dev/null 2>&1
}

# In a process of its own, as the job that it was.
clean_up_after() (
    flock -n 7 || exit
    its_job=${1##*"/gpuci-$node-"}
    its_job=${its_job%.*}
    case $its_job in *[!0-9]*) exit ;; esac # of a node whose name begins like ours
    SLURM_JOB_ID=$its_job GPUCI_SCRATCH=$1 GPUCI_JOB_DIR=$1 container_remove
    rm -rf -- "$1"
)

# shellcheck disable=SC2329 # patiently calls it
unpack() {
    (cd -- "$GPUCI_JOB_DIR" && cp -- gpuci_node.pyz tree.tar "$scratch") || return
    sum=$(sha256sum <"$scratch/tree.tar")
    if [ "${sum%% *}" != "$GPUCI_TREE_SHA256" ]; then
        echo "tree.tar is damaged: its sha256 is ${sum%% *}, not $GPUCI_TREE_SHA256"
        return 1
    fi
    tar --no-same-owner --no-same-permissions -xf "$scratch/tree.tar" -C "$scratch/tree" &&
        rm -f -- "$scratch/tree.tar"
}

keep() {
    exec "$GPUCI_NODE_PYTHON" -I "$scratch/gpuci_node.pyz" slurm "$GPUCI_JOB_DIR/job.json"
}

keep_inside() {
    export GPUCI_INSIDE=1
    container_run -I "$scratch/gpuci_node.pyz" slurm -
}

run_keeper() {
    [ "$GPUCI_RUNTIME" != none ] || export TMPDIR="$scratch/tmp"
    if "$GPUCI_NODE_PYTHON" -I -c 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then
        keep 9>&- </dev/null &
        keeper=$!
    else
        say "$node has no Python 3.8 or newer ($GPUCI_NODE_PYTHON): the keeper runs inside the container"
        keep_inside 9>&- <"$GPUCI_JOB_DIR/job.json" &
        keeper=$!
        watch_lease 8>&- 9>&- &
        watcher=$!
    fi
    # A signal that came just before was heard, and forwarded to nobody.
    [ -z "$asked" ] || kill -s TERM "$keeper" 2>/dev/null
    await "$keeper"
}

# The keeper's own verdict if it wrote one.
conclude() {
    # Inside the container it may still be about to: the runtime's client dies of the signal at once.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -n "$asked" ] && [ -n "$watcher" ] && [ ! -f "$out/verdict.json" ] || break
        sleep 0.2
    done
    if [ -f "$out/verdict.json" ] && [ ! -L "$out/verdict.json" ]; then
        found=$(sed -n 's/.*"exit_code":\([0-8]\),.*/\1/p' "$out/verdict.json")
        leave "${found:-4}"
    fi
    case $asked,$code in
    ,4) leave 4 ;; # it said in the log why it can't be written
    ,*) give_up infra "the keeper left without a verdict (exit code $code)" ;;
    timeout,*) give_up timeout "the job's time limit is near, and the keeper left without a verdict ($limit)" ;;
    *) give_up cancelled 'ended by a signal; the keeper left without a verdict' ;;
    esac
}

trap 'on_signal cancelled TERM' TERM INT HUP
trap 'on_signal timeout USR1' USR1
claim_job
leave_if_nobody_follows
make_scratch
problem=$(container_check 2>&1 9>&-) || give_up infra "$problem" node
end_if_asked
patiently unpack || give_up infra "the tree can't be unpacked: $problem" node
patiently container_pull || give_up infra "the image can't be had (container.image): $problem" node
run_keeper
conclude
