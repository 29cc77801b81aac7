-- Makes wrk connect to this machine whatever name it asks for, so that no name has to be known to the resolver.
local lookup = wrk.lookup

wrk.lookup = function(_, service)
  return lookup("127.0.0.1", service)
end
