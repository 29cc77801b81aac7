/** What it costs to read certificates: their signatures are checked, some 0.3 ms for each KiB. */

/** In the unit of `patternPrice`; 0 for anything but a string. */
export function certificatePrice(pem: unknown): number {
  return typeof pem === 'string' ? pem.length / CHARACTERS_PER_INSTRUCTION : 0
}

const CHARACTERS_PER_INSTRUCTION = 4
