/** TCP edges: public ports that carry bytes. */

import { modulesAt } from '../../modules/forms.ts'
import { checkAddresses, hostports, portClaims } from './hostports.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const tcpEdges = storedKind({
  kind: 'tcp_edge',
  about: 'Public TCP listeners, distinguished by port.',
  prefix: 'edgtcp_',
  path: '/edges/tcp',
  access: 'account',
  place: 'tcp',
  modules: modulesAt('tcp'),
  form: { description, metadata, hostports },
  settle: (fields, around) => ({ ...fields, hostports: checkAddresses(fields.hostports, around) }),
  read: ({ hostports }) => ({ hostports: hostports.length > 0 ? hostports : null }),
  claims: ({ hostports }) => portClaims(hostports),
})
