/** The parts of the server that an IP restriction can guard (D64). */
export const restrictedParts = ['api', 'dashboard', 'agent', 'endpoints'] as const

export type RestrictedPart = (typeof restrictedParts)[number]
