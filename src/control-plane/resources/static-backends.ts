/** Static backends: one address that the server dials itself, without an agent. */
import { isIP } from 'node:net'
import { Type } from '../../lib/shape/type.ts'
import { Refusal } from '../../model/errors.ts'
import { readHostport } from '../../model/hostport.ts'
import { storedKind } from './resource.ts'
import { description, metadata, readOr } from './resource-fields.ts'

export const staticBackends = storedKind({
  kind: 'static_backend',
  about: 'Sends traffic to a fixed address that the server can reach without an agent.',
  prefix: 'bkdsc_',
  path: '/backends/static',
  listKey: 'backends',
  access: 'account',
  form: {
    description,
    metadata,
    address: Type.String({ description: 'The address to dial, as `host:port`.', maxBytes: 300 }),
    tls: Type.Object(
      {
        enabled: Type.Boolean({ description: 'Whether connections to the address use TLS.', default: false }),
      },
      { additionalProperties: false, description: 'TLS towards the address.', default: { enabled: false } },
    ),
  },
  settle(fields) {
    checkAddress(fields.address)
    return fields
  },
})

function checkAddress(address: string): void {
  const { host } = readOr('BAD_ADDRESS', 'address', '', () => readHostport(address))
  if (host.startsWith('*')) {
    throw new Refusal('BAD_ADDRESS', '`address` cannot have a wildcard: it must name one host to dial', {
      field: 'address',
    })
  }
  // No top-level domain is a number, so this is a mistyped IP address.
  if (/(^|\.)\d+$/.test(host) && !isIP(host)) {
    throw new Refusal('BAD_ADDRESS', '`address` must have a host name or a complete IP address', { field: 'address' })
  }
}
