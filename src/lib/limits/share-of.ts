/** The part of a limit that one of several data planes may use, for limits on what each plane has, such as memory. */

/** At least `floor`, so that many planes together may exceed a small limit; 0 stays 0, which means no limit. */
export function shareOf(limit: number, planes: number, floor = 1): number {
  return limit === 0 ? 0 : Math.min(limit, Math.max(floor, Math.ceil(limit / planes)))
}
