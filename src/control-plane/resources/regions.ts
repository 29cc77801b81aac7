/** The region of a reservation. */
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import type { Surroundings } from './resource.ts'

/**
 * The regions of the hosted service, one of which its scripts name. One server is one region: all are accepted and stored as
 * they were sent, but served from here. The vendor's clients read `""` for a reserved domain, whatever was sent.
 */
const hostedRegions = ['us', 'eu', 'ap', 'au', 'sa', 'jp', 'in', 'us-cal-1', 'global']

export const region = Type.Optional(
  Type.String({ description: "Where it is served from; by default the server's own region.", maxBytes: 64 }),
)

export function checkRegion(sent: string | undefined, { region: own }: Surroundings): string {
  if (sent === undefined || sent === '') return own
  if (sent === own || hostedRegions.includes(sent)) return sent
  throw new BadValue('region', 'value', `\`region\` must be \`${own}\`, the region of this server, or be left out`)
}
