/** The `backend` module: where the traffic of an edge or route goes. */
import { Type } from '../../lib/shape/type.ts'
import { defineModule, moduleForm } from '../module.ts'

const form = moduleForm({
  backend_id: Type.String({ minLength: 1, maxBytes: 255, description: 'Id of the backend that serves the traffic.' }),
})

/** The kinds of backend that carry bytes, and so serve every place. */
const backendKinds = ['tunnel_group_backend', 'weighted_backend', 'failover_backend', 'static_backend']

export const backend = defineModule({
  name: 'backend',
  about: 'Sends the traffic that passed every other module to a backend.',
  at: { tcp: form, tls: form, route: form },
  needs: () => 'bytes',
  reference: {
    field: 'backend_id',
    shownAs: 'backend',
    // an HTTP response has no meaning on a raw connection.
    kinds: (place) => (place === 'route' ? [...backendKinds, 'http_response_backend'] : backendKinds),
  },
  // There is nothing to compile: the edge itself turns the plan into targets.
  resolve: (config, lookup) => lookup.backend(String(config.backend_id)),
})
