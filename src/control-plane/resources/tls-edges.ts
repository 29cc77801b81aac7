/** TLS edges: public names whose TLS is passed through or terminated here. */

import { modulesAt } from '../../modules/forms.ts'
import { checkNames, hostports, nameClaims } from './hostports.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const tlsEdges = storedKind({
  kind: 'tls_edge',
  about: 'Public TLS listeners, distinguished by the name that visitors request.',
  prefix: 'edgtls_',
  path: '/edges/tls',
  access: 'account',
  place: 'tls',
  modules: modulesAt('tls'),
  form: { description, metadata, hostports },
  settle: (fields, around) => ({ ...fields, hostports: checkNames(fields.hostports, around) }),
  read: ({ hostports }) => ({ hostports: hostports.length > 0 ? hostports : null }),
  claims: ({ hostports }) => nameClaims(hostports),
})
