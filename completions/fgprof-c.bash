# bash completion for fgprof-c

# Completes process ids after the last comma. Their names are added if bash only lists them.
_fgprof_c_pids()
{
    local list="" word=$1 pid name
    [[ $word == *,* ]] && list=${word%,*},
    COMPREPLY=()
    while read -r pid name; do
        [[ $list$pid == "$word"* ]] && COMPREPLY+=("$list$pid ($name)")
    done < <(ps --ppid 2 -p 2 --deselect -o pid=,comm= 2>/dev/null) # all processes except kernel threads
    # COMP_TYPE (bash(1)): the other ways of completing insert what all matches have in common.
    if [[ ${#COMPREPLY[@]} -eq 1 || ${COMP_TYPE:-9} != @(9|33|63|64) ]]; then
        COMPREPLY=("${COMPREPLY[@]%% *}")
    fi
}

# Completes word $2 of the command line that begins at word $1.
_fgprof_c_command()
{
    if [[ $COMP_CWORD -eq $1 ]]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$2")
    elif declare -F _command_offset >/dev/null; then # from bash-completion
        _command_offset "$1"
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$2")
    fi
}

# The names of all processes except kernel threads.
_fgprof_c_names()
{
    ps --ppid 2 -p 2 --deselect -o comm= 2>/dev/null
}

_fgprof_c()
{
    local commands="attach run top serve record dump convert diff report"
    local formats="folded pprof text html speedscope firefox raw report otlp"
    local processes="-p --pid --pgrep --cgroup --unit --container --tid"
    local threads="--children --thread"
    local ticks="-F --rate --seed --trace-ids --tasks --max-pause --capture"
    local duration="-d --duration"
    local names="--kernel --native --no-goroutines --full-names --no-demangle --max-depth"
    local write="-o --output" heap="--heap-rate --heap-mmap"
    local shown="-t --threads --processes --label --lines --state --elapsed --on-cpu --off-cpu"
    local kinds="wall cpu block mutex blame heap allocs growth threadcreate"
    local push="--push --push-every --push-kinds --tag --service --push-spool --push-spool-size
        --push-token-file --push-user-file --push-header-file --push-ca"
    local sampling="$threads $ticks $duration $names $write $shown --idle --no-idle --slow --debuginfod $heap -f --format
        -q --quiet -v --verbose --kind --blame --critical --keep-memory"
    local keeping="--wait --keep --keep-memory --trigger --after --cooldown --max-files $write"
    local word=$2 before=$3 command=${COMP_WORDS[1]-} options i

    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W "$commands help version -h --help -V --version" -- "$word"))
        return
    fi
    if [[ $command == run ]]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} == -- ]] || continue
            _fgprof_c_command $((i + 1)) "$word"
            return
        done
    fi
    [[ $command == help ]] && COMPREPLY=($(compgen -W "$commands" -- "$word"))
    case $command in
    attach) options="$processes $sampling" ;;
    run) options="$sampling --" ;;
    top) options="$processes $threads $ticks $duration $names" ;;
    serve) options="$processes $threads $ticks $names $keeping $push $heap --listen --allow-local-users --allow-remote --token-file --max-seconds" ;;
    record) options="$processes $threads $ticks $names $keeping -f --format" ;;
    dump) options="$processes $threads $names $write --capture -g --group --addresses --json" ;;
    convert) options="$write $shown -f --format --kind --blame --critical" ;;
    diff) options="$write $shown -f --format -n --normalize --no-normalize" formats="folded html report" ;;
    report) options="$write --json --critical" ;;
    *) return ;;
    esac

    # bash splits words at =.
    [[ $word == = ]] && word="" before="$before="
    [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD - 2]}=
    case ${before%=} in
    -p | --pid) _fgprof_c_pids "$word"; return ;;
    -f | --format) COMPREPLY=($(compgen -W "$formats" -- "$word")); return ;;
    --kind) COMPREPLY=($(compgen -W "$kinds" -- "$word")); return ;;
    --push) compopt -o nospace; COMPREPLY=($(compgen -W "pyroscope= otlp=" -- "$word")); return ;;
    --push-spool) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
    --token-file | --push-token-file | --push-user-file | --push-header-file | --push-ca)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    -o | --output)
        if [[ $command == @(serve|record) ]]; then
            mapfile -t COMPREPLY < <(compgen -d -- "$word")
            return
        fi
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --pgrep) COMPREPLY=($(compgen -W "$(_fgprof_c_names)" -- "$word")); return ;;
    -d | --duration | -F | --rate | --seed | --critical | --label | --slow | --max-depth | --max-pause | --cgroup | --unit | --container | --thread | --tid | --heap-rate | \
        --listen | --max-seconds | --keep | --keep-memory | --trigger | --after | --cooldown | --max-files | \
        --push-every | --push-kinds | --push-spool-size | --tag | --service) return ;;
    esac
    case $before in
    --capture | --capture=) COMPREPLY=($(compgen -W "auto kernel ptrace record" -- "$word")); return ;;
    --threads=) COMPREPLY=($(compgen -W "tid" -- "$word")); return ;;
    *=) return ;;
    esac
    if [[ $word != -* && $command == @(convert|diff|report) ]]; then
        mapfile -t COMPREPLY < <(compgen -d -- "$word"; compgen -f -X '!*.fgprof' -- "$word")
        return
    fi
    if [[ $word != -* && $command == @(attach|top|serve|record|dump) ]]; then
        COMPREPLY=($(compgen -W "$(_fgprof_c_names)" -- "$word"))
        return
    fi
    COMPREPLY=($(compgen -W "$options -h --help --help-all" -- "$word"))
}

complete -o filenames -o bashdefault -F _fgprof_c fgprof-c
