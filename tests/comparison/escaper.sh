# A program that does what agents' programs do: it leaves processes behind, each hiding better than the last.
# 0 is the program itself, A stays in its group, B has a session of its own, C has forked twice and closed its
# files, D ignores every polite signal as well and has an empty environment. Each is a `sleep` of its own length.
sleep "$1.1" &
setsid sleep "$1.2" &
setsid sh -c '(exec sleep "$1.3" <&- >&- 2>&- &)' sh "$1" &
setsid env -i PATH="$PATH" sh -c 'trap "" TERM HUP INT; (exec sleep "$1.4" <&- >&- 2>&- &)' sh "$1" &
exec sleep "$1.0"
