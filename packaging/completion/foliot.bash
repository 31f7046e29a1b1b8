# bash completion for foliot: commands and options come from the program itself, hosts and labs from what runs.
_foliot()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local words=''

    case $previous in
    --lab | -l | --name)
        words=$(ls /run/foliot-lab 2>/dev/null)
        ;;
    --host | -H)
        words=$(cd /run/foliot-lab 2>/dev/null && ls -d -- */*/ 2>/dev/null | cut -d/ -f2 | sort -u)
        ;;
    --socket | -s | -o | --config | --output)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    *)
        if [ "$COMP_CWORD" = 1 ]; then
            words=$(foliot help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p')" --help --version"
        else
            case $command in
            help) words=$(foliot help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p') ;;
            selftest) words='clock --json --host --lab --socket' ;;
            lab) words="up status exec eval traffic fault run down --name --controller --no-agents --agent" ;;
            sim) words='run replay scale' ;;
            topology) words='show declare history --why --json --controller --authority --token-file --help' ;;
            host) words='list check remove token rotate --seconds --uses --after --finish --json --controller --authority --token-file --help' ;;
            perf) words='all_reduce all_gather reduce_scatter alltoall broadcast sendrecv pingpong --plugin --net-version --device --channels --message --ranks --hosts --lab --rank --meet --jobs --duration --trace --wait --json --live --help' ;;
            *) words=$(foliot "$command" --help 2>/dev/null | grep -oE -e '--[a-z]+(-[a-z]+)*' | sort -u)' --help' ;;
            esac
            if [[ $command =~ ^(lab|sim|keygen|topology)$ ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"; compgen -f -- "$word")
                return
            fi
        fi
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _foliot foliot
