# bash completion for foliot: commands and options come from the program itself, hosts and labs from what runs;
# what may follow a command is listed here, and a test holds it against the manual.
_foliot()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local words=''

    case $previous in
    --lab | -l | --name)
        words=$(ls /run/foliot-lab "${XDG_CACHE_HOME:-$HOME/.cache}/roce-vm/labs" 2>/dev/null | grep -v :)
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
            selftest) words='clock rdma' ;;
            audit) words='run show gate facts capture checks explain test runs nodes stop diff baseline matrix' ;;
            alerts) words='list ack silence silences unsilence test check export metrics' ;;
            config) words='show diff history observe apply rollback' ;;
            host) words='list check remove token rotate' ;;
            jobs) words='compare' ;;
            lab) words='up status exec eval traffic fault run down' ;;
            perf) words='all_reduce all_gather reduce_scatter alltoall broadcast sendrecv pingpong gather' ;;
            sim) words='run replay swarm scale' ;;
            topology) words='show declare history' ;;
            esac
            words+=" $(foliot "$command" --help 2>/dev/null | grep -oE -e '--[a-z]+(-[a-z]+)*' | sort -u) --help"
            if [[ $command =~ ^(alerts|audit|config|jobs|keygen|lab|sim|topology)$ ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"; compgen -f -- "$word")
                return
            fi
        fi
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _foliot foliot
