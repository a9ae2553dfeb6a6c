"""Operations on whole programs: copying, comparing, fingerprinting, outlining."""
