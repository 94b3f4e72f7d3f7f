# fish completion for fgprof-c

function __fgprof_c_in -d "Whether one of these commands is given, and no -- after it"
    set -l words (commandline -opc)
    contains -- "$words[2]" $argv; and not contains -- -- $words
end

function __fgprof_c_pids -d "Process ids, after the last comma"
    set -l before (string match -r '^.*,' -- (commandline -ct | string replace -r '^(-p|--pid=)' ''))
    # All processes except kernel threads.
    ps --ppid 2 -p 2 --deselect -o pid=,comm= 2>/dev/null |
        string replace -r '^ *(\d+) +(.*)$' "$before\$1\t\$2"
end

function __fgprof_c_names -d "Names of all processes except kernel threads"
    ps --ppid 2 -p 2 --deselect -o comm= 2>/dev/null
end

function __fgprof_c_command -d "Completions of the command after --"
    set -l words (commandline -opc)
    set -l end (contains -i -- -- $words)
    complete -C (string join ' ' -- (string escape -- $words[(math $end + 1)..]) (commandline -ct))
end

# __fgprof_c_option COMMANDS ARGUMENTS...: an option of COMMANDS, which are separated by spaces.
function __fgprof_c_option
    complete -c fgprof-c -n "__fgprof_c_in $argv[1]" $argv[2..]
end

set -l commands attach run top serve record dump convert diff report
set -l c complete -c fgprof-c
set -l o __fgprof_c_option
set -l first "not __fish_seen_subcommand_from $commands"

$c -f
$c -n $first -s h -l help -d "Show help"
$c -n $first -s V -l version -d "Print the version"
$c -n $first -a help -d "Show the help of a command"
$c -n $first -a version -d "Print the version"
$c -n "__fish_seen_subcommand_from help" -a "$commands"
$c -n "__fish_seen_subcommand_from $commands" -l help-all -d "Show all options"
$c -n $first -a attach -d "Sample running processes"
$c -n $first -a run -d "Start a command and sample it"
$c -n $first -a top -d "Show live where the time goes"
$c -n $first -a serve -d "Serve profiles over HTTP, as Go programs do"
$c -n $first -a record -d "Keep the last minute, write it when it matters"
$c -n $first -a dump -d "Show each thread's stack once, and what it waits for"
$c -n $first -a convert -d "Write a recording in another format"
$c -n $first -a diff -d "Show how two recordings differ"
$c -n $first -a report -d "Sum up a recording on one page of text"

$c -n "__fish_seen_subcommand_from run; and contains -- -- (commandline -opc)" \
    -a "(__fgprof_c_command)"
$o "convert diff report" -k -a "(__fish_complete_suffix .fgprof)"

$o "attach top serve record dump" -a "(__fgprof_c_names)" -d "Process"
$o "attach top serve record dump" -s p -l pid -x -a "(__fgprof_c_pids)" -d "Sample these processes"
$o "attach top serve record dump" -l pgrep -x -a "(__fgprof_c_names)" \
    -d "All processes whose name matches"
$o "attach top serve record dump" -l cgroup -x -d "All processes in the control group"
$o "attach top serve record dump" -l unit -x -d "All processes of the unit"
$o "attach top serve record dump" -l container -x -d "All processes of the container"
$o "attach run top serve record dump" -l children -d "Descendants too"
$o "attach run top serve record dump" -l thread -x -d "Only threads whose current name matches"
$o "attach top serve record dump" -l tid -x -d "Only these threads"
$o "attach run" -l idle -d "Keep threads that never moved"
$o "attach run" -l no-idle -d "Leave out threads that never moved"
$o "attach run" -l slow -x -d "Only spans of a label that last longer: KEY>TIME"

$o "attach run top" -s d -l duration -x -d "End after this time: 30s, 1.5m, 2h, 500ms"
$o "attach run top serve record" -s F -l rate -x -d "Ticks per second, 1 to 1000"
$o "attach run top serve record" -l seed -x -d "Repeat the random ticks of a recording"
$o "attach run top serve record" -l trace-ids -d "Trace and span ids as labels"
$o "attach run top serve record dump" -l capture -x -a "auto kernel ptrace record" -d "How running threads are sampled"
$o "attach run top serve record" -l max-pause -x -d "Limit pauses to this percentage of a thread's running time"

$o "diff" -s f -l format -x -a "folded html report" -d "Output format"
$o "attach run record convert" -s f -l format -x -a "folded pprof text html speedscope firefox raw report otlp" \
    -d "Output format"
$o "attach run dump convert diff report" -s o -l output -r -F -d "Write to a file"
$o "attach run" -s q -l quiet -d "No progress, no summary"
$o "attach run" -s v -l verbose -d "Write the log of refused BPF programs to a file"

$o "attach run convert diff" -s t -d "The thread's name as root frame"
$o "attach run convert diff" -l threads -d "The thread's name as root frame"
$o "attach run convert diff" -l processes -d "The process as root frame"
$o "attach run convert diff" -l label -x -d "The value of a label as root frame"
$o "attach run convert diff" -l lines -d "File and line in each frame"
$o "attach run convert diff" -l state -d "The thread's state as leaf frame"
$o "attach run convert diff" -l elapsed -d "Elapsed time, which adds up to seconds"
$o "attach run convert diff" -l on-cpu -d "Only samples on a CPU"
$o "attach run convert diff" -l off-cpu -d "Only samples off the CPU"
$o "attach run convert" -l kind -x -a "wall cpu block mutex blame heap allocs growth threadcreate" -d "What the profile is about"
$o "attach run convert" -l blame -d "Waits under the threads that are waited for"
$o "attach run convert report" -l critical -x -d "What the time of a thread depended on"
$o "attach run top serve record dump" -l kernel -d "Kernel functions too"
$o "attach run top serve record dump" -l native -d "The Python interpreter's own functions too"
$o "attach run top serve record dump" -l no-goroutines -d "The threads of Go programs, not their goroutines"
$o "attach run top serve record" -l tasks -d "The suspended tasks of Python's asyncio too"
$o "attach run top serve record dump" -l full-names -d "C++ names with parameters and template arguments"
$o "attach run top serve record dump" -l no-demangle -d "Names as in the symbol table"
$o "attach run serve" -l heap-rate -x -a "64K 512K 4M" -d "Sample one allocation per so many bytes"
$o "attach run serve" -l heap-mmap -d "Count mmap(2) as an allocation too"
$o "attach run" -l debuginfod -d "Fetch debug information"
$o "attach run top serve record dump" -l max-depth -x -d "Keep this many frames nearest the leaf"

$o "serve record" -s o -l output -x -a "(__fish_complete_directories)" -d "Write files to this directory"
$o "serve record" -l keep -x -d "Forget what is older than this"
$o "serve record" -l trigger -x -d "Write a file when this holds"
$o "serve record" -l after -x -d "Time from a trigger to its file"
$o "serve record" -l cooldown -x -d "At most one triggered file in this time"
$o "serve record" -l max-files -x -d "Keep only the newest files"
$o "serve record" -l wait -d "Wait for a process with the name, and for the next"
$o "serve" -l listen -x -d "HOST:PORT, unix:PATH or none"
$o "serve" -l allow-local-users -d "Answer all users of this machine"
$o "serve" -l allow-remote -d "Listen where other machines can reach it"
$o "serve" -l token-file -r -F -d "A file with the token that requests must send"
$o "serve" -l max-seconds -x -d "Refuse profiles of more seconds"
$o "attach run serve record" -l keep-memory -x -d "MiB for what is kept"
$o "serve" -l push -x -a "pyroscope= otlp=" -d "Push profiles to a server"
$o "serve" -l push-every -x -d "Push interval"
$o "serve" -l push-kinds -x -a "wall,cpu,off_cpu wall,cpu,off_cpu,mutex,block" -d "What to push"
$o "serve" -l tag -x -d "A label of what is pushed: KEY=VALUE"
$o "serve" -l service -x -d "The service's name"
$o "serve" -l push-spool -x -a "(__fish_complete_directories)" -d "Where unsent profiles wait"
$o "serve" -l push-spool-size -x -d "Limit of what waits there"
$o "serve" -l push-token-file -r -F -d "A file with the token to push with"
$o "serve" -l push-user-file -r -F -d "A file with USER:PASSWORD to push with"
$o "serve" -l push-header-file -r -F -d "A file with headers to push with"
$o "serve" -l push-ca -r -F -d "Certificates to trust"
$o "dump" -s g -l group -d "Group threads with equal stacks"
$o "dump" -l addresses -d "Show the addresses of frames and locks"
$o "dump report" -l json -d "Write JSON"
$o "diff" -l no-normalize -d "Leave the counts as they are"
$o "diff" -s n -l normalize -d "Scale the first to the total of the second"
$o "$commands" -s h -l help -d "Show help"
