# GDB: attach to the first N ranks of `inspector serve`, each as an inferior of its own: source ranks.gdb, ranks N
define ranks
  set $rank = 0
  while $rank < $arg0
    if $rank > 0
      add-inferior
      eval "inferior %d", $rank + 1
    end
    eval "attach %d", 5000000 + $rank
    set $rank = $rank + 1
  end
end
