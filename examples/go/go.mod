module libqwen35

go 1.19
